require ["fileinto", "imap4flags", "duplicate"];
# No field has such a name, and that is no error (section 2.4.2.2).
if anyof(header :contains "Subject:" "", exists "From:", header :matches "sub ject" "*", duplicate :header "Message-ID:") {
    discard;
}
if not exists ["From", "From:"] {
    fileinto "Lists";
}
=====
From: a@x.example
Subject: hello

Text.
=====
fileinto "Lists"
