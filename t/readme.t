# The examples of README.md are run as they stand, against a server with a token and one without.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use AbxServer;
use Test::More;

my $readme = AbxServer::slurp("$FindBin::Bin/../README.md");
my @blocks = $readme =~ /<!-- run by t\/readme\.t -->\n```sh\n(.*?)```/sg;

is scalar @blocks, 2, 'the examples are found';

sub run_block {
	my ($server, $text, $token) = @_;
	my $script = "$server->{dir}/example.sh";

	# With a token, curl is told of it the way its owner would: by a file, not on the command line.
	AbxServer::spew("$server->{dir}/.curlrc", $token ? "header = \"Authorization: Bearer $token\"\nfail\n" : "fail\n");
	AbxServer::spew($script, "set -eu\n$text");
	local $ENV{CURL_HOME} = $server->{dir};
	local $ENV{HOME} = $server->{dir};
	local $ENV{ABX_TEMPLATE_URL} = $server->url('');
	local $ENV{PATH} = AbxServer::bin_dir() . ":$ENV{PATH}";
	local $ENV{ABX_SERVER_TOKEN} = $token if $token;
	my $output = `sh '$script' 2>&1`;
	is $?, 0, 'the example runs' or diag $output;
	return $output;
}

for my $token (undef, 'readme-token') {
	my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => $token }, token => $token);
	my $base = $server->base;
	my $curl = run_block($server, $blocks[0], $token);

	like $curl, qr/"status": "ok"/, 'health';
	like $curl, qr/"code": "path_not_allowed"/, 'the check';
	like $curl, qr/"bytes": 23/, 'the upload';
	like $curl, qr/hello from \Q$base\E/, 'the script ran';
	like $curl, qr/HELLO FROM/, 'and through a pipe';
	like $curl, qr/^event: exit$/m, 'and as a stream';
	like $curl, qr/"name": "raw\/hostname"/, 'raw bytes are listed';
	like $curl, qr/^raw\/hostname$/m, 'and packed';
	like $curl, qr/"data": "hello from /, 'what a background process wrote';
	like $curl, qr/"os": "Linux"/, 'system facts';
	like $curl, qr/"updated": \["GREETING"\]/, 'variables';
	like $curl, qr/"session_id": "[0-9a-f]{12}"/, 'a terminal';
	my $abxctl = run_block($server, $blocks[1], $token);
	like $abxctl, qr/some text/, 'abxctl reads what it wrote';
	like $abxctl, qr/^9$/m, 'and runs a command on it';
	like $abxctl, qr/runshell/, 'and lists the commands';
}

done_testing;
