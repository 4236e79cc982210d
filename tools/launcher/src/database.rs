//! The address of the database and the database user of each service.

/// A database with its owner and its other users. Its addresses contain passwords.
#[derive(Clone)]
pub struct Database {
    url: String,
    passwords: Vec<(String, String)>,
}

impl Database {
    /// A database with one user for all services, for one that is not the mesh's own.
    pub fn shared(url: &str) -> Self {
        Self::new(url, Vec::new())
    }

    /// A database by the address of its owner, and the passwords of its other users.
    pub fn new(url: &str, passwords: Vec<(String, String)>) -> Self {
        Self { url: url.to_owned(), passwords }
    }

    /// The address for its owner, used to migrate, load and write.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address for a user; that of the owner when there is no such user.
    pub fn url_of(&self, user: &str) -> String {
        let password = self.passwords.iter().find(|(name, _)| name == user).map(|(_, password)| password);
        match (password, self.url.split_once("://")) {
            (Some(password), Some((scheme, rest))) => {
                let there = rest.rsplit_once('@').map_or(rest, |(_, there)| there);
                format!("{scheme}://{user}:{password}@{there}")
            }
            _ => self.url.clone(),
        }
    }

    /// Its users except the owner, with their passwords.
    pub fn passwords(&self) -> &[(String, String)] {
        &self.passwords
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_an_address_of_its_own() {
        let database = Database::new("postgres://me:p@ss@h:1/d?x=y", vec![("query".into(), "q".into())]);
        assert_eq!(database.url_of("query"), "postgres://query:q@h:1/d?x=y");
        assert_eq!(database.url_of("somebody"), database.url());
        assert_eq!(Database::shared("postgres://h/d").url_of("query"), "postgres://h/d");
        assert!(!format!("{database:?}").contains("p@ss"));
    }
}
