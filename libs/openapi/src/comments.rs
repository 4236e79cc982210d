//! The comments of the contract, which are the descriptions in the document.

use std::collections::HashMap;

use prost_reflect::{
    DescriptorPool, EnumDescriptor, EnumValueDescriptor, FieldDescriptor, FileDescriptor, MessageDescriptor,
    MethodDescriptor, ServiceDescriptor,
};

/// All comments, by file and path in its descriptor.
#[derive(Debug)]
pub(crate) struct Comments(HashMap<(String, Vec<i32>), String>);

/// A descriptor that may have a comment.
pub(crate) trait Commented {
    /// Its file and its path in the file's descriptor.
    fn place(&self) -> (FileDescriptor, &[i32]);
}

macro_rules! commented {
    ($($kind:ty: $file:expr),* $(,)?) => {
        $(impl Commented for $kind {
            fn place(&self) -> (FileDescriptor, &[i32]) {
                let file: fn(&Self) -> FileDescriptor = $file;
                (file(self), self.path())
            }
        })*
    };
}

commented! {
    ServiceDescriptor: Self::parent_file,
    MethodDescriptor: |method| method.parent_service().parent_file(),
    MessageDescriptor: Self::parent_file,
    FieldDescriptor: Self::parent_file,
    EnumDescriptor: Self::parent_file,
    EnumValueDescriptor: |value| value.parent_enum().parent_file(),
}

impl Comments {
    /// The comments of all files.
    pub(crate) fn read(pool: &DescriptorPool) -> Self {
        let mut comments = HashMap::new();
        for file in pool.files() {
            let info = file.file_descriptor_proto().source_code_info.as_ref();
            for place in info.into_iter().flat_map(|info| &info.location) {
                let Some(comment) = &place.leading_comments else { continue };
                comments.insert((file.name().to_owned(), place.path.clone()), paragraphs(comment));
            }
        }
        Self(comments)
    }

    /// The comment of a descriptor, each paragraph on one line.
    pub(crate) fn of(&self, commented: &impl Commented) -> &str {
        let (file, path) = commented.place();
        self.0.get(&(file.name().to_owned(), path.to_vec())).map_or("", String::as_str)
    }

    /// The first paragraph of a comment, and the others.
    pub(crate) fn titled(&self, commented: &impl Commented) -> (&str, &str) {
        let comment = self.of(commented);
        comment.split_once("\n\n").unwrap_or((comment, ""))
    }
}

/// Joins the lines of each paragraph, with an empty line between paragraphs.
fn paragraphs(comment: &str) -> String {
    let mut text = String::new();
    for line in comment.lines().map(str::trim) {
        match line {
            "" if !text.is_empty() && !text.ends_with("\n\n") => text.push_str("\n\n"),
            "" => {}
            line => {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push(' ');
                }
                text.push_str(line);
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_paragraphs_are_not() {
        assert_eq!(paragraphs(" One\n two.\n\n\n Three.\n"), "One two.\n\nThree.");
        assert_eq!(paragraphs("\n"), "");
    }
}
