# A real browser terminal: a page with @xterm/xterm in headless Chromium, on a session of the server. Skipped where there is no Chromium, node or npm, or where
# npm cannot fetch the packages.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use File::Copy qw(copy);
use Test::More;

sub find {
	my ($program) = grep { -x } map { my $name = $_; map { "$_/$name" } split /:/, $ENV{PATH} } @_;

	return $program;
}

my $chromium = find('chromium', 'chromium-browser', 'google-chrome');
plan skip_all => 'there is no Chromium here' unless $chromium;
plan skip_all => 'there is no node or npm here' unless find('node') && find('npm');
plan skip_all => 'there is no vim here' unless find('vim');
my $dir = AbxServer::temp_dir();
my $said = `'$FindBin::Bin/setup.sh' '$dir' 2>&1`;
plan skip_all => "npm cannot fetch the packages: $said" if $?;

# As a file, the page's origin is "null": it has to be listed.
my $server = AbxServer->start(env => { ABX_ALLOWED_ORIGINS => '*' });
my $id = AbxWebSocket::new_session($server, shell => '/bin/bash');
my $port = AbxWebSocket::pty_port($server);
AbxServer::spew($server->base . '/text', join '', map { "line $_ of the text\n" } 1 .. 100);
copy("$FindBin::Bin/$_", "$dir/$_") or die "$_: $!" for qw(page.html drive.js);

open my $driver, '-|', 'node', "$dir/drive.js", "file://$dir/page.html", $chromium, "ws://127.0.0.1:$port/pty?session_id=$id" or die "node: $!";
while (my $line = <$driver>) {
	my ($not, $name) = $line =~ /\A(not )?ok \d+ - (.*)/ or do { diag $line; next };
	ok !$not, $name;
}
close $driver;
is $?, 0, 'the script has ended well';
done_testing;
