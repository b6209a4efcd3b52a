require ["body", "fileinto"];
if body :content "multipart" :contains "preamble" { fileinto "before"; }
if body :content "multipart/mixed" :contains "epilogue" { fileinto "behind"; }
if body :content "multipart" :contains "inside" { fileinto "no"; }
if body :content "text" :contains "preamble" { fileinto "no"; }
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>
Content-Type: multipart/mixed; boundary=b

preamble
--b

inside
--b--
epilogue
=====
fileinto "before"
fileinto "behind"
