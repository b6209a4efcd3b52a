require ["ihave", "fileinto"];
if not ihave "vnd.example.run" { error "no vnd.example.run here"; }
run "x";
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>

x
=====
failure: line 2: no vnd.example.run here
keep (implicit)
