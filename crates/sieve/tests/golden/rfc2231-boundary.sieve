require ["body", "fileinto"];
if body :text :contains "marker" { fileinto "YES"; }
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>
Content-Type: multipart/mixed (a (b)); boundary*1=cd; boundary*0=ab

--abcd
Content-Type: text/plain; charset*0=iso; charset*1="-8859-1"; charset=us-ascii
Content-Transfer-Encoding: (by x) base64 (y);

c29tZSBtYXJrZXIK
--abcd--
=====
fileinto "YES"
