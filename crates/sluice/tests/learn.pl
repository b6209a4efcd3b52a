# What SpamAssassin says of mails, offline, with what sa-learn has learned: one JSON object a line.
# Usage: learn.pl RULES SITE, folders of files; the paths of mails come on the standard input, one a line.
use strict;
use warnings;
use JSON::PP;
use Mail::SpamAssassin;

my ($rules, $site) = @ARGV;
my $json = JSON::PP->new->latin1->canonical;
my $reader = Mail::SpamAssassin->new({
    rules_filename => $rules, site_rules_filename => $site, userprefs_filename => '/dev/null', userstate_dir => '/nonexistent',
    dont_copy_prefs => 1, local_tests_only => 1, languages => 'C', home_dir_for_helpers => '/nonexistent',
});
$reader->init(1);
$| = 1;
while (my $path = <STDIN>) {
    chomp $path;
    open(my $file, '<:raw', $path) or die "$path: $!";
    my $text = do { local $/; <$file> };
    my $mail = $reader->parse($text, 1);
    my $status = $reader->check($mail);
    print $json->encode({
        file => $path, score => $status->get_score(), bayes => $status->{bayes_score},
        hits => [sort @{$status->{test_names_hit}}], tokens => $status->get_tag('TOKENSUMMARY'),
    }), "\n";
    $status->finish();
    $mail->finish();
}
