require "fileinto";
if header :is "x-fold" "a b c" { fileinto "YES"; }
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>
X-Fold: a
 b
	c

x
=====
fileinto "YES"
