# Terminals under hostile and slow clients, and through the deaths of what is around them.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use Test::More;

my $server = AbxServer->start;
my $port = AbxWebSocket::pty_port($server);
my $base = $server->base;

sub session { return AbxWebSocket::new_session($server, @_) }
sub watch   { return AbxWebSocket::watch($server, @_) }
sub forget  { $server->delete("/pty/sessions/$_") for @_ }
sub ptyd    { my ($pid) = grep { AbxServer::program_name($_) eq 'abx-ptyd' } AbxServer::children_of($server->pid); return $pid }
sub fds     { return scalar(() = glob "/proc/$_[0]/fd/*") }

sub rss {
	return (AbxServer::slurp("/proc/$_[0]/status") // '') =~ /VmRSS:\s+(\d+)/ ? $1 : 0;
}

# A session works: a command goes through and comes back.
my $mark = 0;
sub works {
	my ($ws, $name) = @_;

	$mark++;
	$ws->type("echo al\"\"ive$mark.\n");
	ok defined $ws->expect(qr/alive$mark\.\r\n/), $name;
}

my $id = session();
my $ws = watch($id);
works($ws, 'a session');
my $ptyd = ptyd();
my $before = fds($ptyd);

# Connects and drops, at every stage.
my @half;
for my $i (1 .. 1000) {
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "connect $i: $!";
	my $head = "GET /pty?session_id=$id HTTP/1.1\r\nHost: 127.0.0.1:$port\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" .
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n";
	my $part = $i % 5;
	syswrite $socket, substr $head, 0, 50 if $part == 1;
	syswrite $socket, $head if $part >= 2;
	syswrite $socket, AbxWebSocket::frame(1, '{"type": "inp', continues => 1) if $part == 3;
	syswrite $socket, "\x81\xfe\xff" if $part == 4;
	push @half, $socket if $i % 50 == 0;
	close $socket unless $i % 50 == 0;
}
works($ws, 'after 1000 connects and drops the first client works');
close $_ for splice @half;
ok AbxServer::wait_for(sub { fds($ptyd) <= $before }), 'no descriptor is left of them';
is ptyd(), $ptyd, 'it is the same daemon';

# Silent connections do not keep others out.
@half = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) } 1 .. 400;
syswrite $_, 'GET ' for @half;
my $among = watch($id);
works($among, 'a client among hundreds of silent ones');
$among->end;
close $_ for splice @half;

# Garbage behind the handshake.
srand 1;
for (1 .. 50) {
	my $rubbish = watch($id);
	$rubbish->write_all(join '', map { chr int rand 256 } 1 .. 2000);
	$rubbish->end;
}
works($ws, 'after random bytes the first client works');

# A client that never reads. While another one does, that is not held up, and the first is cut off.
my $flood = session();
my $stalled = watch($flood, rcvbuf => 4096);
my $reader = watch($flood);
my $rss = rss($ptyd);
$reader->type("head -c 12000000 /dev/zero | tr '\\0' x | fold -w 99; echo fl\"\"ooded\n");
my $len = 0;
my $tail = '';
until ($tail =~ /flooded\r\n/) {
	my $message = $reader->next_json or last;
	$len += length($message->{data} // '');
	$tail = substr $tail . ($message->{data} // ''), -200;
}
cmp_ok $len, '>', 12_000_000, 'the one that reads gets 12 MB, whole';
works($ws, 'another session works meanwhile');
cmp_ok rss($ptyd) - $rss, '<', 16 << 10, 'the memory of it stays small';
is $stalled->close_code, 4008, 'the one that does not is closed as too slow';
works($reader, 'the session goes on');
$reader->end;

# A client that never reads, alone: the program waits for it, but not for ever.
my $alone = watch($flood, rcvbuf => 4096);
$alone->type("head -c 10000000 /dev/zero | tr '\\0' y | fold -w 99 > /dev/tty; echo wri\"\"tten > done\n");
ok AbxServer::wait_for(sub { -s "$base/done" }), 'what it writes ends when the client is given up';
is $alone->close_code, 4008, 'which is told so';
works(watch($flood), 'the session goes on');

# Input that nobody reads: it waits, bounded, and is not lost.
my $stopped = session(shell => '/bin/bash');
$ws = watch($stopped);
AbxServer::spew("$base/slow", "stty raw -echo; echo rea\"\"dy; until [ -e go ]; do sleep 0.05; done; head -c 3000000 | md5sum > sum; stty sane; echo sum\"\"med\n");
$ws->type("sh slow\n");
ok $ws->expect(qr/ready/), 'a program that does not read';
$rss = rss($ptyd);
my $typed = 'abcdefghi' x 11_112;
my $child = fork();
if (!$child) {
	my $text = join '', map { AbxWebSocket::frame(1, AbxServer::encode_json({ type => 'input', data => substr $typed x 31, $_ * 100_000, 100_000 })) } 0 .. 29;
	$ws->write_all($text);
	POSIX::_exit(0);
}
select undef, undef, undef, 0.5;
cmp_ok rss($ptyd) - $rss, '<', 4096, '3 MB of input to it are not kept in memory';
my $aside = watch($stopped);
$aside->send_json({ type => 'resize', cols => 99, rows => 9 });
ok AbxServer::wait_for(sub { $server->get("/pty/sessions/$stopped")->{json}{cols} == 99 }), 'another client of it is heard';
AbxServer::spew("$base/go", '');
ok $ws->expect(qr/summed/), 'once it reads';
waitpid $child, 0;
like AbxServer::slurp("$base/sum"), qr/\A\Q${\ Digest::MD5::md5_hex(substr $typed x 31, 0, 3_000_000)}\E /, 'all has arrived' if eval { require Digest::MD5 };
$ws->end;
forget($stopped);

# Many sessions and many clients at the same time.
forget($flood);
my @ids = map { session() } 1 .. 9;
my @clients = map { my $one = $_; map { watch($one) } 1 .. 5 } @ids;
$_->type("seq 1000 | tail -1; echo en\"\"d\n") for @clients[map { $_ * 5 } 0 .. 8];
is scalar(grep { defined $_->expect(qr/1000\r\n.*end\r\n/s) } @clients), 45, '45 clients of nine sessions';
$_->end for @clients;
forget(@ids);

# Deaths around it.
$ws = watch($id);
works($ws, 'a session before the deaths');
my $shell = $server->get("/pty/sessions/$id")->{json}{pid};
for my $group (qw(terminal core)) {
	my $pid = $server->responder($group);
	kill 'KILL', $pid;
	ok AbxServer::wait_for(sub { my $new = $server->responder($group); $new && $new != $pid }), "abx-$group dies and is back";
}
works($ws, 'the connection has not noticed');
is $server->get("/pty/sessions/$id")->{json}{pid}, $shell, 'the new abx-terminal knows the session';
my $proxied = AbxWebSocket->connect(port => $server->port, path => "/pty?session_id=$id");
is $proxied->next_json->{event}, 'started', 'a client through lighttpd';
my $lighttpd = $server->lighttpd;
kill 'KILL', $lighttpd;
ok AbxServer::wait_for(sub { my $new = $server->lighttpd; $new && $new != $lighttpd }), 'lighttpd dies and is back';
is $proxied->close_code, 1006, 'its client has lost the connection';
works($ws, 'a direct one has not');
ok AbxServer::wait_for(sub { eval { $proxied = AbxWebSocket->connect(port => $server->port, path => "/pty?session_id=$id"); ($proxied->status // 0) == 101 } }), 'it connects again';
$proxied->next_json;
ok defined $proxied->expect(qr/alive$mark\.\r\n/), 'and sees what it has missed';
kill 'HUP', $server->pid;
works($ws, 'a reload of the policy changes nothing');

# The daemon's own death.
$ws->type("setsid sh -c 'echo kid \$\$; exec sleep 300' & wait\n");
my ($kid) = ($ws->expect(qr/kid \d+\r\n/) // '') =~ /kid (\d+)\r\n/;
ok AbxServer::is_alive($kid), 'a child that has left the terminal';
kill 'KILL', $ptyd;
is $ws->close_code, 1006, 'when the daemon dies its clients lose their connection';
ok AbxServer::wait_for(sub { my $new = ptyd(); $new && $new != $ptyd }), 'it is started again';
ok AbxServer::wait_for(sub { !AbxServer::is_alive($shell) }), 'its shells have ended';
ok AbxServer::wait_for(sub { !AbxServer::is_alive($kid) }), 'and what they had started';
is_deeply $server->get('/pty/sessions')->{json}{sessions}, [], 'no session is left';
is(AbxWebSocket->connect(port => $port, path => "/pty?session_id=$id")->close_code, 4004, 'the old one is not known');
$id = session();
works(watch($id), 'a new one works');

# A request while the daemon is stopped waits for it; a request that it had taken ends with it.
my $stuck = ptyd();
kill 'STOP', $stuck;
my $asker = fork();
if (!$asker) {
	my $answer = $server->get('/pty/sessions');
	AbxServer::spew("$base/answer", "$answer->{status} $answer->{content}");
	POSIX::_exit(0);
}
select undef, undef, undef, 0.3;
kill 'KILL', $stuck;
waitpid $asker, 0;
is AbxServer::slurp("$base/answer"), '200 {"sessions": []}', 'a request that waited is answered by the next daemon';

is $server->stop, 0, 'the server stops';
unlike $server->log_text, qr/ (?:error|warning) +abx-(?:ptyd|terminal)/, 'ptyd and terminal have nothing to complain of';
done_testing;
