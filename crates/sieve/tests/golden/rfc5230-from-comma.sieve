require "vacation";
vacation :from "Doe, John <bob@y.example>" "Away.";
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>

x
=====
error: line 2, column 1: :from takes an address
