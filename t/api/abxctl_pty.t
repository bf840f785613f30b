# abxctl pty, which is given a terminal by running it in one: a session of the same server.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use Ctl;
use Test::More;

my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 'a-token' }, token => 'a-token');
my %env = (env => { ABX_TEMPLATE_URL => $server->url(''), ABX_SERVER_TOKEN => 'a-token', HOME => $server->base });
my %in = (headers => { Authorization => 'Bearer a-token' });

sub ids { return map { $_->{id} } @{ $server->get('/pty/sessions')->{json}{sessions} } }

# A session in which abxctl runs.
sub outer {
	my ($command) = @_;
	my $id = AbxWebSocket::new_session($server, cols => 70, rows => 20);
	my $ws = AbxWebSocket::watch($server, $id, %in);

	$ws->expect(qr/> \z/);
	$ws->type("$command; echo ABXCTL=\$?.\n");
	$ws->expect(qr/ABXCTL=\$\?\.\r\n/);
	return ($id, $ws);
}

my $run = 'ABX_TEMPLATE_URL=' . $server->url('') . " ABX_SERVER_TOKEN=a-token $abxctl pty";
my ($outer, $ws) = outer("$run --shell /bin/sh");
ok $ws->expect(qr/[#\$] \z/), 'it opens a session';
my ($inner) = grep { $_ ne $outer } ids();
$ws->type("stty size; tty; echo in\"\"ner\n");
like $ws->expect(qr/inner\r\n/) // '', qr/\r\n20 70\r\n/, 'of the size of the terminal here';
$ws->send_json({ type => 'resize', cols => 101, rows => 31 });
ok AbxServer::wait_for(sub { $server->get("/pty/sessions/$inner")->{json}{cols} == 101 }), 'which follows it';
$ws->type("stty size; echo si\"\"zed\n");
like $ws->expect(qr/sized\r\n/) // '', qr/\r\n31 101\r\n/, 'also for its programs';
$ws->type("trap 'echo tra\"\"pped' INT; echo se\"\"t\n");
$ws->expect(qr/set\r\n/);
$ws->type("\x03");
$ws->type("\n");
ok $ws->expect(qr/trapped/), 'control-C goes to the session, and not to abxctl';
$ws->type("echo ke\"\"pt\n");
$ws->expect(qr/kept\r\n/);
$ws->type("\x1d");
like $ws->expect(qr/ABXCTL=\d+\./) // '', qr/detached; "abxctl pty --session $inner" comes back\r\nABXCTL=0\./, 'control-] leaves it';
$ws->type("stty -a | grep -o ' .\\?echo \\| .\\?icanon '; echo mo\"\"des\n");
like $ws->expect(qr/modes\r\n/) // '', qr/ echo.* icanon |  icanon.* echo /s, 'the terminal here is as it was';
ok $server->get("/pty/sessions/$inner")->{json}{alive}, 'the session runs on';
$ws->type("$run --session $inner; echo ABXCTL=\$?.\n");
ok $ws->expect(qr/kept\r\n/), 'coming back shows what was before';
$ws->type("exit 7\n");
ok $ws->expect(qr/ABXCTL=7\./), 'the exit code is that of the shell';

# Without a terminal.
my $piped = finish(launch({ %env, in => "echo pi\"\"ped; exit 5\n" }, 'pty', '--shell', '/bin/sh'));
is $piped->{status}, 5, 'standard input is typed';
like $piped->{out}, qr/piped\r\n/, 'and the output printed';
my $ended = finish(launch({ %env, in => "echo las\"\"t\n" }, 'pty', '--shell', '/bin/sh'));
is $ended->{status}, 0, 'its end ends the shell';
like $ended->{out}, qr/last\r\n/, 'after all that was typed';
my $signal = finish(launch({ %env, in => "kill -9 \$\$\n" }, 'pty', '--shell', '/bin/sh'));
is $signal->{status}, 137, 'a shell that is killed';
my $long = finish(launch({ %env, in => "seq 200000\nexit\n" }, 'pty', '--shell', '/bin/sh'));
is scalar(() = $long->{out} =~ /^(?:[>#\$] )*\d+\r$/mg), 200_000, 'long output is whole';

# What goes wrong.
check(finish(launch({ %env }, 'pty', '--session', 'none')), 1, '', qr/^abxctl: there is no session none\n\z/, 'an unknown session');
check(finish(launch({ %env }, 'pty', '--shell', '/bin/cat')), 1, '', qr/^abxctl: shell: /, 'a wrong shell');
check(finish(launch({ env => { %{ $env{env} }, ABX_SERVER_TOKEN => 'wrong' } }, 'pty', '--session', $inner)), 1, '', qr/does not know this ABX_SERVER_TOKEN/, 'a wrong token');
check(finish(launch({ env => { ABX_TEMPLATE_URL => 'http://127.0.0.1:' . AbxServer::free_port() } }, 'pty', '--session', 'x')), 7, '', qr/^abxctl: http/, 'no server');
# (The shell of this one is stopped, so that it does not end with standard input.)
my $id = AbxWebSocket::new_session($server);
kill 'STOP', $server->get("/pty/sessions/$id")->{json}{pid};
my $connected = () = $server->log_text =~ /abx-ptyd: 101/g;
my $lost = launch({ %env }, 'pty', '--session', $id);
my ($ptyd) = grep { AbxServer::program_name($_) eq 'abx-ptyd' } AbxServer::children_of($server->pid);
ok AbxServer::wait_for(sub { my $n = () = $server->log_text =~ /abx-ptyd: 101/g; $n > $connected }), 'another is connected';
kill 'KILL', $ptyd;
check(finish($lost), 1, qr//, qr/^abxctl: the connection was lost; "abxctl pty --session $id" comes back\n\z/, 'a lost connection');
done_testing;
