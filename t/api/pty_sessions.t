# /pty/sessions: the HTTP side of terminals.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use Test::More;

my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 'to/ken+=', OUTER => 'kept', LD_PRELOAD => undef }, token => 'to/ken+=');
my $base = $server->base;
my $port = AbxWebSocket::pty_port($server);
my %token = (headers => { 'X-Access-Token' => 'to/ken+=' });

sub create { return $server->post('/pty/sessions', { shell => '/bin/sh', @_ }) }

sub is_refused {
	my ($answer, $status, $type, $message, $name) = @_;

	is $answer->{status}, $status, "$name: $status" or diag $answer->{content};
	is $answer->{json}{type}, $type, "$name: $type";
	like $answer->{json}{error}, $message, "$name: message";
}

sub forget { $server->delete("/pty/sessions/$_") for @_ }

# What a command prints in a session. The marks are numbered, since a client gets the earlier output, too.
my $mark = 0;
sub output_of {
	my ($id, $command) = @_;
	my $ws = AbxWebSocket::watch($server, $id, %token);

	$mark++;
	$ws->type("printf '<$mark%s$mark>\\n' \"\$($command)\"\n");
	my ($text) = ($ws->expect(qr/<$mark(?!%).*$mark>\r\n/s) // '') =~ /.*<$mark(.*)$mark>\r\n/s;
	$ws->end;
	return $text // '(nothing)';
}

is_deeply $server->get('/pty/sessions')->{json}, { sessions => [] }, 'no session yet';

# Create.
my $answer = create(env => { PS1 => '$ ' });
is $answer->{status}, 200, 'create';
my $id = $answer->{json}{session_id};
like $id, qr/\A[0-9a-f]{12}\z/, 'twelve hex digits';
is $answer->{json}{ws_url}, "ws://localhost:$port/pty?session_id=$id&token=to%2Fken%2B%3D", 'ws_url carries the token, escaped';
is_deeply [sort keys %{ $answer->{json} }], [qw(pid session_id ws_url)], 'and nothing more';
my $pid = $answer->{json}{pid};
ok AbxServer::is_alive($pid), 'the shell runs';
my $one = $server->get("/pty/sessions/$id")->{json};
is_deeply [sort keys %$one], [qw(alive cols created_at id pid rows)], 'a session';
is $one->{id}, $id, 'its id';
is $one->{pid}, $pid, 'its pid';
is $one->{cols} . 'x' . $one->{rows}, '80x24', 'its size';
ok $one->{alive}, 'alive';
cmp_ok abs($one->{created_at} - time), '<', 60, 'created now';
is_deeply $server->get('/pty/sessions')->{json}, { sessions => [$one] }, 'the list holds it';
my ($path, $query) = $answer->{json}{ws_url} =~ m{(/pty)\?(.*)};
my $ws = AbxWebSocket->connect(port => $port, path => "$path?$query");
is $ws->next_json->{event}, 'started', 'the URL opens it';
$ws->end;

# What runs in it.
is output_of($id, 'stty size'), '24 80', 'the terminal has the size';
is output_of($id, 'echo $TERM $SHELL'), 'xterm-256color /bin/sh', 'TERM and SHELL';
is output_of($id, 'pwd'), $base, 'the base directory';
is output_of($id, 'echo $OUTER'), 'kept', 'the environment of the server';
is output_of($id, 'env | grep -c ^ABX_'), '0', 'without its own settings';
is output_of($id, 'ls /proc/self/fd | tr "\n" " "'), '0 1 2 3 ', 'no descriptor but the terminal (and the directory that ls reads)';
like output_of($id, 'ps -o tty= -p $$; ps -o stat= -p $$'), qr{pts/\d+\s+\w[N<]?l?s}, 'the terminal is its own, and it leads a session';
is output_of($id, 'ps -o sid= -p $$ | tr -d " "'), $pid, 'its own';
my ($score) = AbxServer::slurp("/proc/$server->{pid}/oom_score_adj") =~ /(-?\d+)/;
cmp_ok output_of($id, 'cat /proc/self/oom_score_adj'), '>', $score, 'when memory runs out it goes before the server';
forget($id);
is_refused($server->get("/pty/sessions/$id"), 404, 'ProcessLookupError', qr/\ANo such terminal session: $id\z/, 'a closed session');

# Arguments.
mkdir "$base/sub";
my $other = create(cols => 1, rows => 1000, cwd => 'sub', env => { A => "caf\x{e9}", LD_PRELOAD => '/x.so', LD_LIBRARY_PATH => '/x',
	DYLD_INSERT_LIBRARIES => 'x', TERM => 'dumb' });
is $other->{status}, 200, 'every argument';
is output_of($other->{json}{session_id}, $_->[0]), $_->[1], $_->[2] for
	['stty size', '1000 1', 'the limits of sizes'], ['pwd', "$base/sub", 'cwd'], ['echo $A', "caf\x{e9}", 'env'],
	['echo $TERM', 'dumb', 'a TERM of the caller'], ['env | grep -c -e ^LD_ -e ^DYLD', '0', 'what loads code is left out'];
forget($other->{json}{session_id});
for my $shell ('/bin/bash', '/usr/bin/bash') {
	my $bash = create(shell => $shell, env => { HOME => $base });
	is $bash->{status}, 200, $shell;
	is output_of($bash->{json}{session_id}, 'echo $SHELL'), $shell, "$shell: SHELL";
	forget($bash->{json}{session_id});
}
SKIP: {
	skip 'there is a zsh here', 2 if -e '/bin/zsh';
	is_refused(create(shell => '/bin/zsh'), 500, 'FileNotFoundError', qr{/bin/zsh}, 'a shell that is not installed');
	is_deeply $server->get('/pty/sessions')->{json}{sessions}, [], 'and no session of it is left';
}
is_refused(create(shell => $_), 400, 'ValueError', qr/\Ashell: /, "shell $_") for '/bin/cat', 'bash', '', '../bin/sh', '/bin/bash ';
is_refused(create(shell => 5), 400, 'ValueError', qr/\Ashell: /, 'shell is a number');
for my $name (qw(cols rows)) {
	is_refused(create($name => $_), 400, 'ValueError', qr/\A$name: /, "$name: " . AbxServer::encode_json($_))
		for 0, -1, 1001, 1.5, '80', [80], JSON::PP::true, 1e9;
	is create($name => undef)->{status}, 200, "$name: null is left out";
}
forget(map { $_->{id} } @{ $server->get('/pty/sessions')->{json}{sessions} });
is $server->post('/pty/sessions', '{"shell": "/bin/sh", "cols": 80.0}')->{status}, 400, 'cols: 80.0';
is_refused(create(env => { ABX_SERVER_TOKEN => 'x' }), 403, 'PermissionError', qr/ABX_/, 'a variable of the server');
is create(env => { abx_y => 'x' })->{json}{code}, 'variable_not_allowed', 'its code';
is_refused(create(env => { '' => 'x' }), 400, 'ValueError', qr/\Aenv: /, 'an empty name');
is_refused(create(env => { 'A=B' => 'x' }), 400, 'ValueError', qr/\Aenv: /, 'a name with =');
is_refused(create(env => { A => 5 }), 400, 'ValueError', qr/\Aenv: /, 'a value that is no string');
is_refused(create(env => [1]), 400, 'ValueError', qr/\Aenv: /, 'env is a list');
is_refused(create(cwd => '/etc'), 403, 'PermissionError', qr/\Acwd: /, 'cwd outside');
is_refused(create(cwd => 'missing'), 403, 'PermissionError', qr/\Acwd: /, 'cwd missing');
is create(cwd => '../..')->{json}{code}, 'path_not_allowed', 'its code';
my $big = create(env => { map { ("V$_" => 'x' x 100_000) } 1 .. 12 });
is $big->{status}, 200, 'an environment of 1.2 MB' or diag $big->{content};
is output_of($big->{json}{session_id}, 'env | grep ^V7= | wc -c'), 100_004, 'arrives whole';
forget($big->{json}{session_id});
is create(env => { V => 'x' x 200_000 })->{status}, 500, 'a variable that the kernel does not take';
is_deeply $server->get('/pty/sessions')->{json}{sessions}, [], 'nothing is left of all these';

# Resize.
$id = AbxWebSocket::new_session($server);
my $resized = $server->post("/pty/sessions/$id/resize", { cols => 120, rows => 40 });
is $resized->{status}, 200, 'resize';
is_deeply $resized->{json}, { %{ $server->get("/pty/sessions/$id")->{json} } }, 'answers with the session';
is "$resized->{json}{cols} $resized->{json}{rows}", '120 40', 'of the new size';
is output_of($id, 'stty size'), '40 120', 'which the terminal has';
is_refused($server->post("/pty/sessions/$id/resize", { cols => 80 }), 400, 'ValueError', qr/\Arows: is required/, 'rows missing');
is_refused($server->post("/pty/sessions/$id/resize", { cols => $_, rows => 24 }), 400, 'ValueError', qr/\Acols: /, 'cols ' . AbxServer::encode_json($_))
	for 0, -1, 1001, 1.5, '80';
is_refused($server->post('/pty/sessions/nosuchid/resize', { cols => 80, rows => 24 }), 404, 'ProcessLookupError', qr/nosuchid/, 'resize of an unknown one');
is output_of($id, 'stty size'), '40 120', 'refused ones change nothing';

# Ten, and no more.
my @ids = map { AbxWebSocket::new_session($server) } 1 .. 9;
is_refused(create(), 429, 'ResourceError', qr/Too many terminal sessions \(10\)/, 'the eleventh');
is scalar @{ $server->get('/pty/sessions')->{json}{sessions} }, 10, 'ten are listed';
forget(pop @ids);
is create()->{status}, 200, 'a closed one makes room';
my $ending = AbxWebSocket::watch($server, $ids[0], %token);
$ending->type("exit 3\n");
is $ending->next_event->{exit_code}, 3, 'one ends';
is create()->{status}, 200, 'an ended one does not count';
my $ended = $server->get("/pty/sessions/$ids[0]")->{json};
ok !$ended->{alive}, 'and is still listed, not alive';
is_refused($server->post("/pty/sessions/$ids[0]/resize", { cols => 80, rows => 24 }), 400, 'ValueError', qr/ended/, 'resize of an ended one');
is $server->delete("/pty/sessions/$ids[0]")->{status}, 200, 'it can be closed';
is $server->get("/pty/sessions/$ids[0]")->{status}, 404, 'and is gone then';
forget(map { $_->{id} } @{ $server->get('/pty/sessions')->{json}{sessions} });

# Many that end: the list does not grow without end.
for (1 .. 40) {
	my $short = AbxWebSocket::new_session($server);
	my $watcher = AbxWebSocket::watch($server, $short, %token);
	$watcher->type("exit\n");
	is $watcher->close_code, 1000, 'a session ends' if $_ == 1;
	$watcher->close_code;
}
cmp_ok scalar @{ $server->get('/pty/sessions')->{json}{sessions} }, '<=', 32, 'so many ended ones are kept';

# Delete ends the whole tree.
$id = AbxWebSocket::new_session($server);
$ws = AbxWebSocket::watch($server, $id, %token);
$ws->type("(trap '' HUP TERM; setsid sleep 987 & nohup sleep 986 & sleep 985 & echo \$! ; wait) & sleep 0.1; sleep 984\n");
my @kids;
ok AbxServer::wait_for(sub {
	@kids = map { m{/(\d+)/} ? $1 : () } grep { (AbxServer::slurp($_) // '') =~ /\Asleep\x00098[4-7]/ || (AbxServer::slurp($_) // '') =~ /\Asleep\x0098[4-7]/ } glob '/proc/[0-9]*/cmdline';
	return @kids >= 4;
}), 'children of many kinds';
my $deleted = $server->delete("/pty/sessions/$id");
is_deeply $deleted->{json}, { status => 'closed', session_id => $id }, 'delete';
is_deeply [grep { AbxServer::is_alive($_) } @kids], [], 'all of them have ended when it answers';
is $ws->next_event->{event}, 'exited', 'a client is told';
is $ws->close_code, 1000, 'and closed';
is_refused($server->delete("/pty/sessions/$id"), 404, 'ProcessLookupError', qr/$id/, 'a second delete');
is_refused($server->delete('/pty/sessions/a%20b'), 404, 'ProcessLookupError', qr/a b/, 'a strange id');

# A shell that ignores the hang-up.
$id = AbxWebSocket::new_session($server, shell => '/bin/bash');
$ws = AbxWebSocket::watch($server, $id, %token);
$ws->type("trap '' HUP TERM; echo rea\"\"dy\n");
ok $ws->expect(qr/ready/), 'a stubborn shell';
is $server->delete("/pty/sessions/$id")->{status}, 200, 'ends, too';
is $ws->next_event->{exit_code}, -9, 'by force';

unlike $server->log_text, qr{to/ken|to%2Fken}, 'the token is not in the log';

# In local mode, and with identities, no token is told.
my $local = AbxServer->start;
my $plain = $local->post('/pty/sessions', { shell => '/bin/sh' }, headers => { 'X-Access-Token' => 'whatever' });
is $plain->{json}{ws_url}, 'ws://localhost:' . AbxWebSocket::pty_port($local) . "/pty?session_id=$plain->{json}{session_id}", 'local mode: no token in ws_url';

# The server's end takes everything with it.
my $tail = AbxWebSocket::watch($local, $plain->{json}{session_id});
$tail->type("nohup sleep 983 & echo \$!; echo o\"\"k\n");
my ($sleeper) = ($tail->expect(qr/ok/) // '') =~ /^(\d+)\r$/m;
is $local->stop, 0, 'the server stops';
is $tail->close_code, 1001, 'a client is told that it is the server';
ok !AbxServer::is_alive($sleeper), 'no child is left';
done_testing;
