require "fileinto";
if address "x-confirm-reading-to" "ann@x.example" { fileinto "A"; }
if address ["mail-reply-to", "Apparently-To"] "\"quoted local\"@x.example" { fileinto "B"; }
if address :localpart "apparently-to" "quoted local" { fileinto "C"; }
if address :domain "for-approval" "x.example" { fileinto "D"; }
if address "X-Beenthere" "list@x.example" { fileinto "E"; }
if address "Return-Receipt-Requested" "ann@x.example" { fileinto "F"; }
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>
X-Confirm-Reading-To: Ann <ann@x.example>
Apparently-To: "quoted local"@x.example
For-Approval: a.b@x.example (A (nested) b)
X-BeenThere: list@x.example
Return-Receipt-Requested: Ann <ann@x.example>

x
=====
fileinto "A"
fileinto "B"
fileinto "C"
fileinto "D"
fileinto "E"
fileinto "F"
