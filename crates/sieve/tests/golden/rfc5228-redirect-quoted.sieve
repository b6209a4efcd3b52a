redirect "\"odd user\"@x.example";
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>

x
=====
redirect "\"odd user\"@x.example"
