# What Perl's reader makes of a configuration, as JSON: names with kinds, priorities, scores and expressions.
# Usage: peer.pl RULES SITE [LINT], folders of files.
use strict;
use warnings;
use JSON::PP;
use Mail::SpamAssassin;

my ($rules, $site, $lint) = @ARGV;
my $reader = Mail::SpamAssassin->new({
    rules_filename => $rules, site_rules_filename => $site, userprefs_filename => '/dev/null',
    dont_copy_prefs => 1, local_tests_only => 0, languages => 'C',
});
my $errors = $lint ? $reader->lint_rules() : $reader->init(1);
my $conf = $reader->{conf};

my %kinds = (
    8 => 'header', 9 => 'header_eval', 10 => 'body', 11 => 'body_eval', 12 => 'full', 13 => 'full_eval', 14 => 'rawbody',
    15 => 'rawbody_eval', 16 => 'uri', 17 => 'uri_eval', 18 => 'meta', 19 => 'rbl_eval', 20 => 'placeholder',
);
my (%tests, %priorities);
for my $list (qw(head_tests body_tests uri_tests rawbody_tests full_tests head_evals body_evals rawbody_evals full_evals uri_evals)) {
    for my $priority (keys %{$conf->{$list} || {}}) {
        my $rules = $conf->{$list}{$priority};
        for my $name (keys %$rules) {
            $priorities{$name} = $priority;
            $tests{$name} = $rules->{$name} unless $list eq 'head_tests' && $conf->{test_opt_exists}{$name};
        }
    }
}
$tests{$_} = $conf->{rbl_evals}{$_} for keys %{$conf->{rbl_evals}};

my %out;
for my $name (keys %{$conf->{test_types}}) {
    $out{$name} = {
        kind => $kinds{$conf->{test_types}{$name}} // 'other',
        scores => [map { 0 + ($conf->{scoreset}[$_]{$name} // 0) } 0 .. 3],
        flags => $conf->{tflags}{$name} // '',
        priority => defined $priorities{$name} ? 0 + $priorities{$name} : undef,
        call => ref $tests{$name} ? [$tests{$name}[0], @{$tests{$name}[1]}] : undef,
        expression => defined $conf->{test_qrs}{$name} ? "$conf->{test_qrs}{$name}" : undef,
        exists => $conf->{test_opt_exists}{$name} ? JSON::PP::true : JSON::PP::false,
        header => $conf->{test_opt_header}{$name},
        unset => $conf->{test_opt_unset}{$name},
        negated => $conf->{test_opt_neg}{$name} ? JSON::PP::true : JSON::PP::false,
        mimeheader => $conf->{mimeheader_tests}{$name} ? JSON::PP::true : JSON::PP::false,
        description => $conf->{descriptions}{$name},
    };
}
print JSON::PP->new->latin1->canonical->encode({
    rules => \%out, required => 0 + $conf->{required_score}, errors => $errors // 0, regressions => $conf->{regression_tests},
});
