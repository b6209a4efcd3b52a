//! Tests of numbers and places in bytes, as Suricata 7.0.10 has them.

use crate::ids::{conversation_bytes, counts, set};

const BODY: &[u8] = b"\x00\x05abcde|len=0012;hex=1f;oct=017|\xff\xfe\x01\x02\x03\x04|AAAABBBBCCCC tail";

/// Options of rules that match it.
const MATCHING: &[&str] = &[
    r#"content:"|00 05|"; byte_jump:2,0; content:"|7c|"; within:1;"#,
    r#"byte_extract:2,0,n; content:"|7c|"; offset:n; depth:4;"#,
    r#"content:"len="; byte_test:4,=,12,0,relative,string,dec;"#,
    r#"content:"len="; byte_test:4,=,10,0,relative,string,oct;"#,
    r#"content:"hex="; byte_test:2,=,31,0,relative,string,hex;"#,
    r#"content:"hex="; byte_extract:2,0,h,relative,string,hex; byte_test:1,<,h,0;"#,
    r#"content:"oct="; byte_test:3,=,15,0,relative,string,oct;"#,
    r#"content:"017|7c|"; byte_test:2,=,0xfffe,0,relative;"#,
    r#"content:"017|7c|"; byte_test:2,=,0xfeff,0,relative,little;"#,
    r#"content:"017|7c|"; byte_test:2,&,0x8000,0,relative;"#,
    r#"content:"017|7c|"; byte_test:2,^,0x8000,0,relative;"#,
    r#"content:"017|7c|"; byte_test:2,!&,1,0,relative;"#,
    r#"content:"017|7c|"; byte_test:1,=,0x0f,0,relative,bitmask 0xf0;"#,
    r#"byte_math:bytes 2, offset 0, oper +, rvalue 2, result r; content:"|7c|"; offset:r; depth:1;"#,
    r#"byte_math:bytes 2, offset 0, oper -, rvalue 3, result r; isdataat:r,relative;"#,
    r#"byte_math:bytes 2, offset 0, oper -, rvalue 9, result r; content:"a";"#,
    r#"content:"len="; byte_math:bytes 4, offset 0, oper +, rvalue 1, result r, relative, string dec; byte_test:1,<,r,0;"#,
    r#"content:"len="; byte_math:bytes 4, offset 0, oper +, rvalue 1, result r, relative, string dec; content:"hex"; distance:1; within:3;"#,
    r#"content:"len="; byte_extract:4,0,x,relative,string,dec; content:"hex"; distance:1; within:3;"#,
    r#"content:"tail"; isdataat:!1,relative;"#,
    r#"content:"tai"; isdataat:1,relative;"#,
    r#"content:"tail"; isdataat:0,relative;"#,
    r#"isdataat:!60;"#,
    r#"content:"|7c|AAAA"; byte_jump:1,-9,relative,from_beginning; content:"e|7c|";"#,
    r#"byte_jump:2,0,from_end,post_offset -9; content:"tail"; within:4;"#,
    r#"byte_jump:2,0,from_end,post_offset -10; content:" tail"; distance:0; within:5;"#,
    r#"content:"BBBB"; byte_test:4,>,1000,-8,relative;"#,
    r#"content:"BBBB"; byte_test:4,=,0x41414141,-8,relative;"#,
    r#"content:"AAAA"; content:"CCCC"; distance:4; within:4;"#,
    r#"content:"CCCC"; content:"AAAA"; distance:-12; within:4;"#,
    r#"content:"AAAA"; content:!"CCCC"; within:7;"#,
    r#"content:"tail"; endswith;"#,
    r#"content:"|00 05|abc"; startswith;"#,
    r#"content:"len="; byte_extract:4,0,x,relative,string,dec,multiplier 2; content:"AAAA"; offset:x;"#,
    r#"content:"len="; byte_test:0,=,12,0,relative,string,dec;"#,
    r#"content:"len="; byte_test:8,=,12,0,relative,string,dec;"#,
    r#"content:"hex="; byte_test:5,=,31,0,relative,string,hex;"#,
    r#"byte_extract:1,1,n; content:"abcde"; content:"|7c|"; within:n;"#,
    r#"byte_extract:1,1,n; content:"ab"; content:"e|7c|"; within:n;"#,
    r#"byte_extract:1,1,n; content:"ab"; content:"|7c|l"; within:n;"#,
    r#"byte_extract:1,1,n; byte_test:1,>,n,n;"#,
    r#"pcre:"/len=(\d+)/"; byte_test:1,=,0x3b,0,relative;"#,
    r#"content:"len="; pcre:"/^\d+\x3b/R"; content:"hex"; within:3;"#,
    r#"content:"len="; base64_decode:bytes 4,relative; base64_data; content:"|d3|";"#,
    r#"byte_test:2,=,5,0; byte_test:2,!=,6,0;"#,
    r#"byte_test:2,<=,5,0; byte_test:2,>=,5,0;"#,
    r#"content:"len="; byte_jump:4,0,relative,string,dec; content:"17"; within:4;"#,
];

/// Options of rules that do not.
const OTHERS: &[&str] = &[
    r#"byte_extract:2,0,n; content:"e|7c|len"; distance:n; within:6;"#,
    r#"byte_math:bytes 2, offset 0, oper *, rvalue 2, result r; byte_test:1,=,r,0;"#,
    r#"byte_math:bytes 2, offset 0, oper <<, rvalue 1, result r; content:"len="; offset:r; depth:4;"#,
    r#"byte_math:bytes 1, offset 0, oper /, rvalue 0, result r; content:"a";"#,
    r#"content:"tai"; isdataat:!1,relative;"#,
    r#"isdataat:56;"#,
    r#"isdataat:57;"#,
    r#"isdataat:58;"#,
    r#"isdataat:59;"#,
    r#"content:"tail"; byte_jump:1,-4,relative; content:"x";"#,
    r#"byte_jump:2,0,align; content:"e|7c|"; distance:-2; within:2;"#,
    r#"byte_jump:2,0,align; content:"en="; distance:0; within:5;"#,
    r#"content:"tail"; byte_test:1,=,0,0,relative;"#,
    r#"content:"AAAA"; content:"CCCC"; distance:5;"#,
    r#"content:"CCCC"; content:"AAAA"; distance:-11; within:4;"#,
    r#"content:"AAAA"; content:!"CCCC"; distance:4; within:4;"#,
    r#"content:"abc"; startswith;"#,
    r#"content:!"tail"; endswith; content:"a";"#,
    r#"byte_extract:2,0,n,align 4; content:"de"; offset:n; depth:2;"#,
    r#"byte_extract:2,0,n,align 4; content:"|7c|"; offset:n; depth:1;"#,
    r#"byte_extract:1,1,n; byte_jump:1,n,relative; content:"x";"#,
    r#"byte_math:bytes 2, offset 0, oper +, rvalue 1, result r, bitmask 0x0004; byte_test:1,=,r,1;"#,
    r#"byte_test:2,!=,5,0;"#,
    r#"content:"hex="; byte_jump:2,0,relative,string,hex; content:"AAAA"; distance:-10;"#,
];

#[test]
fn numbers_and_places_are_those_of_suricata() {
    let capture = conversation_bytes(9999, &[BODY], 1400);
    let all = MATCHING.iter().map(|options| (options, 1)).chain(OTHERS.iter().map(|options| (options, 0)));
    let mut different = Vec::new();
    for (options, wanted) in all {
        let set = set(&format!("alert tcp any any -> any any ({options} sid:1;)"), &[]);
        assert!(set.problems().is_empty(), "{options}: {:?}", set.problems());
        if counts(&set, &capture).len() != wanted {
            different.push((wanted, options));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}
