require ["date", "variables", "fileinto"];
set "part" "YEAR";
if currentdate "${part}" "2026" { fileinto "now"; }
if date "date" "${part}" "2026" { fileinto "then"; }
if date "date" "${none}" "2026" { fileinto "never"; }
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>
Date: Mon, 23 Nov 2026 10:05:07 +0130

x
=====
fileinto "now"
fileinto "then"
