# What a terminal is like: output, replay, several clients, sizes, signals, job control, the end.
use strict;
use warnings;
use utf8;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use Encode qw(encode_utf8);
use Test::More;

binmode $_, ':encoding(UTF-8)' for Test::More->builder->output, Test::More->builder->failure_output;
my $server = AbxServer->start;
my $base = $server->base;

sub session { return AbxWebSocket::new_session($server, @_) }
sub watch   { return AbxWebSocket::watch($server, @_) }
sub forget  { $server->delete("/pty/sessions/$_") for @_ }

# Run a command and give what it prints. The echo of the line never matches, since the mark is put together by the shell; it is numbered, since
# a client gets the earlier output, too.
my $mark = 0;
sub ask {
	my ($ws, $command) = @_;

	$mark++;
	$ws->type("$command; echo don\"\"e$mark.\n");
	my $text = $ws->expect(qr/done$mark\.\r\n/) // return '(nothing)';
	$text =~ s/\A.*?echo don""e$mark\.\r\n//s;
	$text =~ s/done$mark\.\r\n.*\z//s;
	$text =~ s/\A> //;
	return $text;
}

# Events.
my $id = session();
my $ws = AbxWebSocket->connect(port => AbxWebSocket::pty_port($server), path => "/pty?session_id=$id");
my $pid = $server->get("/pty/sessions/$id")->{json}{pid};
is_deeply $ws->next_json, { type => 'event', event => 'started', session_id => $id, pid => $pid }, 'started comes first';
is ask($ws, 'echo hello'), "hello\r\n", 'a command';

# Characters.
my $odd = "Grüße 漢字 \x{1f600}\x{1f469}\x{200d}\x{1f4bb} e\x{301}";
$ws->type("echo $odd\n");
ok $ws->expect(qr/\r\n\Q$odd\E\r\n/), 'characters of every length, in and out';
AbxServer::spew("$base/long", encode_utf8("漢\x{1f600}é" x 40_000 . "\n"));
my $got = ask($ws, 'cat long');
is $got, "漢\x{1f600}é" x 40_000 . "\r\n", 'a long text of them is not torn anywhere';
is ask($ws, q{printf 'a\377\376b\303'}), "a\x{fffd}\x{fffd}b\x{fffd}", 'bytes that are no characters';
is ask($ws, q{printf '\303'; sleep 0.2; printf '\251\n'}), "é\r\n", 'a character that is written in two halves';
like ask($ws, q{printf 'x\000\033[31my\n'}), qr/x\x00\x1b\[31my/, 'control characters';
$ws->send_text('{"type": "input", "data": "cat -v\n"}');
$ws->send_text('{"type": "input", "data": "a\u0000\u001b[A\n"}');
ok $ws->expect(qr/a\^@\^\[\[A\r\n/), 'they can be typed, NUL too';
$ws->type("\x04");
ok $ws->expect(qr/> /), 'and an end of file';

# Several clients, and replay.
my $second = watch($id);
my $replayed = $second->expect(qr/a\^@\^\[\[A\r\n.*> /s);
ok defined $replayed, 'a later client gets what was before';
cmp_ok length(encode_utf8($replayed)), '<=', 65536, 'no more than 64 KiB of it';
cmp_ok length(encode_utf8($replayed)), '>', 65000, 'but almost so much';
unlike $replayed, qr/\x{fffd}{3}|\A[\x{80}-\x{bf}]/, 'from the beginning of a character';
$ws->type("echo bo\"\"th\n");
ok $_->expect(qr/both\r\n/), 'all clients see the output' for $ws, $second;
$second->type("echo from sec\"\"ond\n");
ok $_->expect(qr/from second\r\n/), 'and all may type' for $ws, $second;
$ws->end;
$second->type("echo on\"\"ly\n");
ok $second->expect(qr/only\r\n/), 'one leaves, the other does not notice';
$second->end;
my $runner = watch($id);
ask($runner, ':');
$runner->type("for i in 1 2 3 4 5 6 7 8 9; do echo tick \$i; sleep 0.05; done; echo fini\"\"shed\n");
$runner->expect(qr/tick 1\r\n/);
$runner->end;
my $back = watch($id);
like $back->expect(qr/finished\r\n/) // '', qr/tick 1\r\n.*tick 9\r\n/s, 'what runs goes on without a client, and nothing of it is missed';
ok !eval { $back->expect(qr/tick 1\r\n/, 0.2) }, 'nor told twice';

# Short output is replayed to the byte.
my $short = session();
my $first = watch($short);
$first->type("seq 3; echo en\"\"d\n");
my $seen = $first->expect(qr/end\r\n> /);
my $again = watch($short)->expect(qr/end\r\n> /);
is $again, $seen, 'the replay is what the first client has seen';
forget($short);

# Sizes.
is ask($back, 'stty size'), "24 80\r\n", 'the size';
$back->send_json({ type => 'resize', cols => 100, rows => 30 });
is ask($back, 'stty size'), "30 100\r\n", 'after a resize message';
is $server->get("/pty/sessions/$id")->{json}{cols}, 100, 'which is listed';
$server->post("/pty/sessions/$id/resize", { cols => 91, rows => 31 });
is ask($back, 'stty size'), "31 91\r\n", 'after a resize request';
AbxServer::spew("$base/winch", "trap 'stty size' WINCH\necho rea\"\"dy\nwhile :; do sleep 0.02; done\n");
$back->type("sh winch\n");
$back->expect(qr/ready/);
$back->send_json({ type => 'resize', cols => 77, rows => 33 });
ok $back->expect(qr/33 77\r\n/), 'the program in the foreground gets SIGWINCH';
$back->type("\x03");
$back->expect(qr/> /);
$back->write_all(join '', map { AbxWebSocket::frame(1, AbxServer::encode_json({ type => 'resize', cols => 1 + $_ % 1000, rows => 1 + $_ * 7 % 1000 })) } 1 .. 1000);
$back->send_json({ type => 'resize', cols => 132, rows => 43 });
is ask($back, 'stty size'), "43 132\r\n", 'right at once after a storm of a thousand';
is $server->post("/pty/sessions/$id/resize", { cols => 80, rows => 24 })->{json}{rows}, 24, 'and by request';
is ask($back, 'stty size'), "24 80\r\n", 'is the last one right';
$back->end;
is ask(watch($id), 'stty size'), "24 80\r\n", 'it stays so for the next client';
forget($id);

# Signals and job control.
$id = session(shell => '/bin/bash', env => { TERM => 'dumb' });
$ws = watch($id);
$ws->expect(qr/[\$#>] \z/);
AbxServer::spew("$base/traps", "for s in INT QUIT TERM HUP; do trap \"echo got \$s\" \$s; done\necho rea\"\"dy\nwhile :; do sleep 0.02; done\n");
$ws->type("bash traps\n");
$ws->expect(qr/ready\r\n/);
for my $signal (qw(INT QUIT)) {
	$ws->send_json({ type => 'signal', signal => "SIG$signal" });
	ok $ws->expect(qr/got $signal\r\n/), "SIG$signal goes to what runs in the foreground";
}
$ws->type("\x03");
ok $ws->expect(qr/got INT\r\n/), 'as control-C does';
$ws->type("\x1a");
ok $ws->expect(qr/Stopped/), 'control-Z stops it';
like ask($ws, 'jobs | grep -c traps'), qr/^1\r$/m, 'job control';
forget($id);
$id = session();
$ws = watch($id);
ask($ws, 'trap "echo shell TERM" TERM');
$ws->send_json({ type => 'signal', signal => 'SIGTERM' });
# (A shell that waits for a line looks at its traps after it.)
$ws->type("\n");
ok $ws->expect(qr/shell TERM\r\n/), 'SIGTERM goes to the shell';
ask($ws, 'trap "echo shell HUP" HUP');
$ws->type("sleep 0.5 && echo wo\"\"ke\n");
$ws->expect(qr/wo""ke\r\n/);
$ws->send_json({ type => 'signal', signal => 'SIGHUP' });
ok $ws->expect(qr/shell HUP\r\n.*woke\r\n|woke\r\n.*shell HUP\r\n/s), 'SIGHUP, too, and not to what runs in it';
$ws->send_json({ type => 'signal', signal => 'SIGKILL' });
is_deeply $ws->next_event, { type => 'event', event => 'exited', session_id => $id, exit_code => -9 }, 'SIGKILL ends the shell';
is $ws->close_code, 1000, 'and the connection';
is $ws->close_reason, 'exited', 'with its reason';

# The end.
$id = session();
$ws = watch($id);
my $watcher = watch($id);
$ws->expect(qr/> /);
$ws->type("seq 100000; exit 42\n");
my $all = '';
for my $client ($ws, $watcher) {
	my ($text, $exited) = (delete $client->{text} // '');
	while (my $message = $client->next_json) {
		$text .= $message->{data} if $message->{type} eq 'output';
		$exited = $message if $message->{type} eq 'event';
		fail 'output after the end' if $exited && $message->{type} eq 'output';
	}
	is $exited->{exit_code}, 42, 'the exit code';
	is $client->close_code, 1000, 'close 1000';
	my @numbers = $text =~ /^(\d+)\r$/mg;
	is "@numbers[0, -1]", '1 100000', 'all output came before it' or diag substr $text, -200;
	is scalar @numbers, 100_000, 'nothing of it is missing';
}
my $late = watch($id);
my $tail = '';
my $exited;
while (my $message = $late->next_json) {
	$tail .= $message->{data} // '';
	$exited = $message if ($message->{event} // '') eq 'exited';
}
like $tail, qr/^100000\r$/m, 'a client of an ended session gets its output';
is $exited->{exit_code}, 42, 'exited';
is $late->close_code, 1000, 'and 1000';

# A job that goes on in the background does not hold the end up, and is not killed by it.
$id = session(shell => '/bin/bash', env => { HISTFILE => '/dev/null' });
$ws = watch($id);
$ws->type("(trap '' HUP; exec sleep 300) & echo kid \$!; disown; exit\n");
my $end = $ws->next_event;
is $end->{event}, 'exited', 'a shell with a job in the background ends';
my ($kid) = $ws->{text} =~ /kid (\d+)\r/;
ok AbxServer::is_alive($kid), 'and the job lives on';
kill 'KILL', $kid if $kid;

# A program that closes the terminal and opens it again.
$id = session(shell => '/bin/bash');
$ws = watch($id);
ask($ws, 'tty');
$ws->type("exec 0<&- 1>&- 2>&-; sleep 1.3; exec </dev/tty >/dev/tty 2>&1; echo ba\"\"ck\n");
ok $ws->expect(qr/back\r\n/), 'the terminal works again';
forget($id);

# Full-screen programs after a reconnect.
SKIP: {
	my ($vim) = grep { -x } map { "$_/vim" } split /:/, $ENV{PATH};
	skip 'there is no vim', 2 unless $vim;
	$id = session(cols => 60, rows => 20, shell => '/bin/bash');
	$ws = watch($id);
	AbxServer::spew("$base/text", join '', map { "line $_ of the text\n" } 1 .. 50);
	$ws->type("vim -u NONE -N text\n");
	ok $ws->expect(qr/line 19 of the text/), 'vim paints its screen';
	# More output than is kept of it: the first screen is no longer in the replay.
	$ws->type("\x06\x02" x 100);
	$ws->expect(qr/\S/);
	AbxServer::wait_for(sub { !defined $ws->next_json(0.3) });
	$ws->end;
	my $return = watch($id);
	my $screen = $return->expect(qr/line \d+ of the text/) // '';
	like $screen, qr/\e\[\?1049h/, 'a client that comes back is put on the alternate screen';
	forget($id);
}

is scalar(() = ($server->log_text // '') =~ / error /g), 0, 'no error in the log';
done_testing;
