require ["date", "variables", "fileinto"];
if date :zone "+0000" :matches "date" "iso8601" "*" { fileinto "${1}"; }
if date :zone "+0100" :matches "date" "iso8601" "*" { fileinto "${1}"; }
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>
Date: Mon, 23 Nov 2026 10:05:07 +0130

x
=====
fileinto "2026-11-23T08:35:07Z"
fileinto "2026-11-23T09:35:07+01:00"
