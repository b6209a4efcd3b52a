require ["ihave", "fileinto"];
if ihave "vnd.example.run" { run "x" :now; }
elsif ihave ["copy", "vnd.example.run"] { fileinto "no"; }
elsif ihave "copy" { fileinto :copy "Copied"; }
else { whatever; }
if allof(ihave "vnd.example.test", madeup "x") { fileinto "no"; }
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>

x
=====
fileinto "Copied"
keep (implicit)
