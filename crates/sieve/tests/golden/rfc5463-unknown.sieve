require ["fileinto", "vnd.example.run"];
keep;
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>

x
=====
error: line 1, column 1: extension "vnd.example.run" is not known
