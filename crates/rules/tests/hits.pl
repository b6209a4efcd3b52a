# What SpamAssassin says of mails: one JSON object a line with its hits, those of sub-rules among them.
# Usage: hits.pl RULES SITE [ADDRESS:PORT], folders of files, and a server of the DNS, without which no network is asked; the paths
# of mails come on the standard input, one a line.
use strict;
use warnings;
use JSON::PP;
BEGIN {
    # What other modules look up, they look up there, too.
    @ENV{qw(RES_NAMESERVERS RES_OPTIONS)} = ("$1", "port:$2") if defined $ARGV[2] && $ARGV[2] =~ /^(.*):(\d+)$/;
}
use Mail::SpamAssassin;

my ($rules, $site, $server) = @ARGV;
my $json = JSON::PP->new->latin1->canonical;
my $reader = Mail::SpamAssassin->new({
    rules_filename => $rules, site_rules_filename => $site, userprefs_filename => '/dev/null', userstate_dir => '/nonexistent',
    dont_copy_prefs => 1, local_tests_only => !defined $server, languages => 'C', home_dir_for_helpers => '/nonexistent',
    # It would learn from the mails, and rate later ones by that.
    post_config_text => "use_bayes 0\n"
        . (defined $server ? "dns_available yes\nclear_dns_servers\ndns_server $server\nrbl_timeout 50\ndns_block_time -1\n" : ''),
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
        file => $path, score => $status->get_score(), required => $status->get_required_score(),
        hits => [sort @{$status->{test_names_hit}}],
        subrules => [sort split(/,/, $status->get_names_of_subtests_hit())],
        scores => $status->get_names_of_tests_hit_with_scores_hash(),
        relays => [map { $status->{"relays_${_}_str"} } qw(trusted untrusted internal external)],
        envelope => scalar $status->get('EnvelopeFrom'),
    }), "\n";
    $status->finish();
    $mail->finish();
}
