#!/usr/bin/perl
# packaging/run.sh where everything is built already: quick and quiet, several at once, as root and as an ordinary user.
use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $ROOT = abs_path("$FindBin::Bin/../..");
my $SCRIPT = "$ROOT/packaging/run.sh";

# Another build directory is none of run.sh's business, and a tree that has changed it would build first.
plan skip_all => 'this build is not one of packaging/run.sh'
	unless AbxServer::build_dir() eq "$ROOT/build" && -e "$ROOT/build/.stamp";

# Whether an ordinary user gets to the tree at all.
sub is_public {
	for (my $dir = $ROOT; $dir ne ''; $dir =~ s{/[^/]*\z}{}) {
		return 0 unless (stat $dir)[2] & 0001;
	}
	return 1;
}

chdir '/';

subtest 'a server' => sub {
	my $server = AbxServer->start(command => $SCRIPT, token => 'x', env => { ABX_SERVER_TOKEN => 'x' });
	my $other = AbxServer->start(command => $SCRIPT);

	is $server->get('/health')->{status}, 200, 'answers';
	is $other->get('/health')->{status}, 200, 'a second one beside it, too';
	is $server->get('/files/stat?path=.')->{json}{path}, $server->base, 'each has settings of its own';
	is $other->get('/files/stat?path=.')->{json}{path}, $other->base, 'that the caller gave';
	is $server->get('/files/stat?path=.', no_token => 1)->{status}, 401, 'the token among them';
	my $pid = $server->pid;
	is AbxServer::program_name($pid), 'abxd', 'run.sh has become abxd';
	is $server->stop, 0, 'SIGTERM ends it';
	like AbxServer::slurp($server->dir . '/ready'), qr/\Aabx: listening on [^\n]+\n\z/, 'one line came on standard output';
	unlike $server->log_text, qr/^run\.sh/m, 'nothing was built';
};

subtest 'an ordinary user' => sub {
	plan skip_all => 'the tree is where no other user gets' unless is_public();
	my $server = AbxServer->start(command => $SCRIPT, ordinary => 1);

	is $server->get('/health')->{status}, 200, 'runs what root has built';
	is $server->post('/shell', { command => 'id -u' })->{json}{stdout} > 0, 1, 'as that user';
	is $server->stop, 0, 'SIGTERM ends it';
};

subtest 'arguments' => sub {
	my $server = AbxServer->prepare(command => $SCRIPT, env => { ABX_LOG_LEVEL => 'loud' });
	my ($status, $out, $err) = $server->run_abxd;

	is $status, 78, 'the exit status is that of abxd';
	is $out, '', 'and nothing comes on standard output';
	($status, $out, $err) = $server->run_abxd('--build-only');
	is "$status$out$err", '0', '--build-only is silent';
	($status, $out, $err) = $server->run_abxd('--version', '--build-only');
	is "$status$out$err", '0', 'wherever it stands';
	($status, $out, $err) = $server->run_abxd('--version');
	like $out, qr/\Aabxd \d/, 'the rest goes to abxd';
};

done_testing;
