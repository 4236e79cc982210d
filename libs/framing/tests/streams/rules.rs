//! Each rule, in the first and in the second request of a connection, and streams that are accepted.

use mesh_framing::Ambiguity;

use crate::record::{Record, Request, read};

const SOUND: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// Asserts that the byte after the `^` in a stream is refused, also when the stream follows a valid request.
#[track_caller]
fn refuses(reason: Ambiguity, marked: &str) {
    let (before, rest) = marked.split_once('^').expect("the place is marked");
    for first in
        ["", SOUND, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"]
    {
        let stream = format!("{first}{before}{rest}");
        let (record, _) = read([stream.as_bytes()]);
        assert_eq!(record.refused, Some((first.len() + before.len(), reason)), "{stream:?}");
    }
}

/// The bodies of a stream; asserts that it is accepted and all of its requests are complete.
#[track_caller]
fn bodies(stream: &str) -> Vec<String> {
    let (record, framing) = read([stream.as_bytes()]);
    assert_eq!(record.refused, None, "{stream:?}");
    assert!(framing.is_between_requests(), "{stream:?}");
    assert_eq!(framing.begun(), record.requests.len(), "{stream:?}");
    let text = |request: Request| {
        assert!(request.is_whole, "{stream:?}");
        String::from_utf8(request.body).expect("a body of text")
    };
    record.requests.into_iter().map(text).collect()
}

#[test]
fn a_length_beside_a_coding_is_refused_in_either_order() {
    refuses(
        Ambiguity::LengthAndCoding,
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding^: chunked\r\n\r\n",
    );
    refuses(
        Ambiguity::LengthAndCoding,
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length^: 5\r\n\r\n",
    );
}

#[test]
fn a_second_length_is_refused_equal_or_not() {
    for length in ["5", "6"] {
        refuses(
            Ambiguity::Lengths,
            &format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\ncontent-length^: {length}\r\n\r\n"),
        );
    }
}

#[test]
fn a_length_that_is_not_one_plain_number_is_refused() {
    for length in
        ["1^, 1", "^+1", "^-1", "1^.0", "1 ^1", "^", "^abc", "0^x1", "^\"1\"", "1844674407370955161^6", "1^;"]
    {
        refuses(
            Ambiguity::Length,
            &format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"),
        );
    }
}

#[test]
fn a_coding_other_than_chunked_is_refused() {
    for coding in [
        "^gzip, chunked",
        "chunked^, chunked",
        "^xchunked",
        "chunked^x",
        "^identity",
        "chunk^",
        "chunked ^x",
        "^\"chunked\"",
        "^\x0bchunked",
        "chunked^;q=1",
    ] {
        refuses(
            Ambiguity::Coding,
            &format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n"),
        );
    }
}

#[test]
fn a_second_coding_is_refused_and_one_in_http_1_0() {
    refuses(
        Ambiguity::Codings,
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding^: chunked\r\n\r\n",
    );
    refuses(Ambiguity::Codings, "POST / HTTP/1.0\r\nTransfer-Encoding^: chunked\r\n\r\n");
}

#[test]
fn a_bare_line_feed_is_refused_wherever_it_stands() {
    for stream in [
        "GET / HTTP/1.1^\nHost: x\r\n\r\n",
        "GET /^\n HTTP/1.1\r\n",
        "^\nGET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\n^\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x^\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n^\n",
        "GET / HTTP/1.1\r\nHo^\nst: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0^\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked^\n\r\n",
    ] {
        refuses(Ambiguity::BareLf, stream);
    }
    for body in [
        "1^\na\r\n0\r\n\r\n",
        "1\r\na^\n0\r\n\r\n",
        "0^\n\r\n",
        "0\r\n^\n",
        "0\r\nX: y^\n\r\n",
        "1;a^\nb\r\na\r\n",
    ] {
        refuses(Ambiguity::BareLf, &chunked(body));
    }
}

#[test]
fn a_bare_carriage_return_is_refused_wherever_it_stands() {
    for stream in [
        "GET / HTTP/1.1\r^\rHost: x\r\n\r\n",
        "\r^GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: x\r^y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r^x",
    ] {
        refuses(Ambiguity::BareCr, stream);
    }
    for body in
        ["1\r^a\r\n0\r\n\r\n", "1\r\na\r^0\r\n\r\n", "0\r^\r\n", "0\r\n\r^x", "0\r\nX: y\r^z", "1;a\r^b\r\n"]
    {
        refuses(Ambiguity::BareCr, &chunked(body));
    }
    refuses(Ambiguity::Version, "GET /^\r HTTP/1.1\r\n");
    refuses(Ambiguity::Name, "GET / HTTP/1.1\r\nHo^\rst: x\r\n\r\n");
}

#[test]
fn a_zero_byte_is_refused_in_heads_and_chunk_lines() {
    for stream in [
        "GET /^\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x^\0\r\n\r\n",
        "GET / HTTP/1.1\r\nHo^\0st: x\r\n\r\n",
        "GET / HTTP/1.1\r\n^\0Host: x\r\n\r\n",
    ] {
        refuses(Ambiguity::Nul, stream);
    }
    for body in ["1^\0\r\na\r\n", "1;^\0\r\na\r\n", "0\r\nX: ^\0\r\n"] {
        refuses(Ambiguity::Nul, &chunked(body));
    }
    assert_eq!(bodies("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n\0\n\r"), ["\0\n\r"]);
}

#[test]
fn a_folded_field_is_refused() {
    refuses(Ambiguity::Folding, "GET / HTTP/1.1\r\nHost: x\r\nX: y\r\n^ z\r\n\r\n");
    refuses(Ambiguity::Folding, "GET / HTTP/1.1\r\n^\tHost: x\r\n\r\n");
    refuses(Ambiguity::Folding, &chunked("0\r\nX: y\r\n^ z\r\n\r\n"));
}

#[test]
fn white_space_before_a_colon_is_refused_and_what_is_no_name() {
    for stream in [
        "GET / HTTP/1.1\r\nHost^ : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length^\t: 5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer^\x0bEncoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\n^: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nnonsense^\r\n\r\n",
    ] {
        refuses(Ambiguity::Name, stream);
    }
    refuses(Ambiguity::Name, &chunked("0\r\nX^ : y\r\n\r\n"));
}

#[test]
fn one_host_is_required_in_http_1_1_and_several_are_refused_in_any() {
    refuses(Ambiguity::NoHost, "GET / HTTP/1.1\r\n\r^\n");
    refuses(Ambiguity::NoHost, "GET http://x/ HTTP/1.1\r\nX: y\r\n\r^\n");
    for version in ["1.0", "1.1"] {
        refuses(Ambiguity::Hosts, &format!("GET / HTTP/{version}\r\nHost: x\r\nhOST^: x\r\n\r\n"));
    }
    assert_eq!(bodies("GET / HTTP/1.0\r\n\r\n"), [""]);
}

#[test]
fn a_host_that_is_none_is_refused_at_the_byte_that_says_so() {
    for host in [
        "a ^b",
        "a^/b@c",
        "u^@a",
        "a:8080^x",
        "a:9999^9x",
        "a:6553^6",
        "^:80",
        "[::1^",
        "[::1]^x",
        "[1:2:3^]",
        "a%4^x",
        "a%^",
        "^\"a\"",
        "a^?b",
        "a^#b",
        "http:^//a",
        "[fe80::1^%25lo]",
        "^\u{e9}",
        "a^\u{7f}",
        "[^]",
        "[v1^]",
        "a:1 ^2",
        "a, ^b",
    ] {
        for (version, space) in [("1.0", ""), ("1.1", " "), ("1.1", "\t  ")] {
            refuses(Ambiguity::Host, &format!("GET / HTTP/{version}\r\nHost:{space}{host}\r\n\r\n"));
        }
    }
    for host in ["", " ", "x", " x:8080 ", "\t[::1]:\t", "my_service", "a%20b", "127.0.0.1:65535", "a,b"] {
        assert_eq!(bodies(&format!("GET / HTTP/1.1\r\nHost:{host}\r\n\r\n")), [""]);
    }
}

#[test]
fn a_line_that_is_no_request_of_http_1_is_refused() {
    for stream in [
        "GET / HTTP/2.0^\r\n",
        "GET /^\r\n",
        "GET / HTTP/1.1 ^\r\n",
        "GET / http/1.1^\r\n",
        "GET / HTTP/1.10^\r\n",
        "PRJ * HTTP/2.0^\r\n",
    ] {
        refuses(Ambiguity::Version, stream);
    }
}

#[test]
fn a_fragment_in_the_target_is_refused() {
    for stream in [
        "GET /^#x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /x?y^# HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET ^#x HTTP/1.0\r\n\r\n",
        "GET http://x/^#/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "PRI *^# HTTP/1.1\r\n",
        "PRI * ^#\r\n",
    ] {
        refuses(Ambiguity::Fragment, stream);
        let (before, rest) = stream.split_once('^').unwrap();
        let pieces = [before, rest].concat();
        let (record, _) = read(pieces.as_bytes().chunks(1));
        assert_eq!(record.refused, Some((before.len(), Ambiguity::Fragment)), "{stream:?} byte by byte");
    }
    // It is a byte like others in methods, and behind the request line.
    assert_eq!(bodies("#GE#T / HTTP/1.1\r\nHost: x\r\nX#: #y\r\n\r\n"), [""]);
}

fn chunked(body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn an_odd_chunk_size_is_refused() {
    for size in ["^", "^ 1", "^x", "0^x1", "^-1", "^+1", "1^,", "1 ^1", "1 ^", "0000000000000000^1", "^;a=b"]
    {
        refuses(Ambiguity::ChunkSize, &chunked(&format!("{size}\r\na\r\n")));
    }
}

#[test]
fn a_chunk_longer_than_its_size_is_refused() {
    refuses(Ambiguity::ChunkEnd, &chunked("1\r\na^b\r\n0\r\n\r\n"));
}

#[test]
fn a_field_of_framing_behind_a_body_is_refused() {
    for field in ["Content-Length", "Transfer-Encoding", "Host"] {
        refuses(Ambiguity::Trailer, &chunked(&format!("0\r\n{field}^: 1\r\n\r\n")));
    }
}

#[test]
fn sound_requests_of_every_kind_follow_one_another() {
    let length = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:  3 \r\n\r\na\r\n";
    let coding = "POST / HTTP/1.1\r\ntransfer-encoding:\tCHUNKED \r\nhost:\r\n\r\n";
    let chunks = "2\r\n\r\n\r\n0A;a=\"b;c\"\r\n0123456789\r\n1 \t;x\r\n!\r\n000\r\nX-Sum: 1\r\n\r\n";
    let stream = format!("{SOUND}\r\n\r\n{length}{coding}{chunks}{SOUND}{length}PUT / HTTP/1.0\r\n\r\n");
    assert_eq!(bodies(&stream), ["", "a\r\n", "\r\n0123456789!", "", "a\r\n", ""]);
    assert_eq!(bodies("PRI / HTTP/1.1\r\nHost: x\r\n\r\n"), [""]);
    assert_eq!(bodies(""), [""; 0]);
}

#[test]
fn a_message_that_breaks_off_is_no_refusal() {
    for stream in ["G", "GET / HTTP/1.1\r\nHo", &chunked(""), &chunked("5\r\nab"), &chunked("0\r\n\r")] {
        let (record, framing) = read([stream.as_bytes()]);
        assert_eq!(record.refused, None, "{stream:?}");
        assert!(!framing.is_between_requests(), "{stream:?}");
        assert_eq!(framing.is_in_body(), stream.contains("chunked"), "{stream:?}");
        assert_eq!(framing.begun(), 1, "{stream:?}");
    }
}

#[test]
fn an_http_2_connection_passes_untouched() {
    let stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\n\r frames \n\n GET / HTTP/1.1\n";
    for pieces in [1, 5, stream.len()] {
        let (record, framing) = read(stream.chunks(pieces));
        assert_eq!(record, Record::default());
        assert!(framing.is_http2() && framing.is_between_requests());
    }
    let (record, framing) = read([b"PRI * HTTP/2.0\r\nHost: x\r\n\r\n".as_slice()]);
    assert_eq!(record.refused, Some((16, Ambiguity::Version)), "only at the beginning, and whole");
    assert!(!framing.is_http2());
}
