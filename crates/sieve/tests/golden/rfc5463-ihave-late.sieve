require ["ihave", "fileinto"];
if ihave "vnd.example.run" { stop; }
fileinto "Before";
run "x";
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>

x
=====
failure: line 4: there is no command run
keep (implicit)
