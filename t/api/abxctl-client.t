# abxctl against a server that answers what the test wants: what it sends, what it prints, its exit statuses.
use strict;
use warnings;

use FindBin;
use IO::Socket::INET;
use MIME::Base64 qw(encode_base64);
use Test::More;

use lib "$FindBin::Bin/../lib";
use AbxServer;
use Ctl;

my @ours;
END {
	my $status = $?;
	kill 'KILL', @ours;
	waitpid $_, 0 for @ours;
	$? = $status;
}

my $ok = response(200, '{"result": null}');

# ---- help and wrong usage: no server is asked

subtest 'help' => sub {
	my $help = ctl('--help');
	check($help, 0, qr/^Usage: abxctl COMMAND/, '', 'the help');
	my @names = $help->{out} =~ /^  ([a-z]+) +[A-Z].*\.$/mg;
	is_deeply [sort @names], [sort keys %arguments], 'it lists every subcommand';
	for my $name (@names) {
		check(ctl($name, '--help'), 0, qr/^Usage: abxctl $name\b.*\n\n[A-Z].*\.\n/, '', "$name --help");
	}
	check(ctl('call', '--help'), 0, qr/^  --json +\S/m, '', 'options are explained');
	check(ctl('-h'), 0, $help->{out}, '', '-h');
	check(ctl('version'), 0, qr/^abxctl \d+\.\d+\.\d+\n$/, '', 'version');
	check(ctl('--version'), 0, ctl('version')->{out}, '', '--version');
	check(ctl({out => '/dev/full'}, '--help'), 1, '', qr/^abxctl: cannot write to standard output\n$/, 'a full disk is noticed');
};

subtest 'wrong usage' => sub {
	check(ctl(), 2, '', qr/^abxctl: .*--help/, 'nothing to do');
	check(ctl('frobnicate'), 2, '', qr/^abxctl: unknown command 'frobnicate'/, 'an unknown subcommand');
	for my $name (sort keys %arguments) {
		my @operands = @{$arguments{$name}};
		# What follows a command of shell belongs to it.
		check(ctl($name, '--frob', @operands), 2, '', qr/^abxctl: $name: there is no option 'frob'\n$/, "$name: an unknown option");
		check(ctl($name, @operands[0 .. $#operands - 1]), 2, '', qr/^abxctl: usage: abxctl $name /, "$name: an operand is missing")
			if @operands;
		check(ctl($name, @operands, 'y', 'z', 'w'), 2, '', qr/^abxctl: usage: abxctl $name /, "$name: too many operands")
			if $name !~ /^(call|shell)$/;
	}
	check(ctl('get', '--wait', 5, '/x'), 2, '', qr/there is no option 'wait'/, 'an option of another subcommand');
	check(ctl('health', '--wait'), 2, '', qr/'wait' needs a value/, 'an option without its value');
	check(ctl('health', '--wait', $_), 2, '', qr/--wait: '\Q$_\E' is not/, "--wait $_") for '', 'x', '1x', -1, 'nan', '1e9';
	check(ctl('start', '--port', $_), 2, '', qr/--port: '\Q$_\E' is not/, "--port $_") for '', 'x', -1, 65536, '1 ';
	check(ctl('get', 'x'), 2, '', qr/'x' does not begin with/, 'a path without a slash');
	for my $argument ('x', '=x', ':=1', '') {
		check(ctl('call', 'n', $argument), 2, '', qr/^abxctl: '\Q$argument\E' is not of the form/, "call: the argument '$argument'");
	}
	check(ctl('call', 'n', 'a=1', 'a:=2'), 2, '', qr/^abxctl: a is given twice/, 'call: an argument twice');
	check(ctl('call', 'n', "a:=$_"), 2, '', qr/^abxctl: a: Invalid JSON/, "call: a:=$_") for '', 'x', '{', '1 2';
	check(ctl('call', 'n', "a=\xff"), 2, '', qr/^abxctl: a: .*UTF-8/, 'call: an argument that is not UTF-8');
	check(ctl('shell', "\xff"), 2, '', qr/^abxctl: .*UTF-8/, 'shell: a command that is not UTF-8');
};

subtest 'settings' => sub {
	for my $url ('x', 'file:///etc/passwd', 'http://', 'https:///x', 'http://h?x', 'http://h#x', '127.0.0.1:80') {
		check(ctl({env => {ABX_TEMPLATE_URL => $url}}, 'get', '/x'), 2, '', qr/^abxctl: ABX_TEMPLATE_URL: '\Q$url\E'/, "the URL $url");
	}
	for my $token ("a b", "a,b", "a\nX-Evil: 1", "a\x7f") {
		my $got = ctl({env => {ABX_SERVER_TOKEN => $token}}, 'get', '/x');
		check($got, 2, '', qr/^abxctl: ABX_SERVER_TOKEN: a token cannot hold/, 'a token that cannot be one');
		unlike $got->{err}, qr/Evil/, 'it is not printed';
	}
	my $closed = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp') // die;
	my %env = (ABX_TEMPLATE_URL => 'http://127.0.0.1:' . $closed->sockport);
	for my $name (qw(discover call get post delete capabilities upload download shell)) {
		check(ctl({env => \%env}, $name, @{$arguments{$name}}), 7, '', qr/^abxctl: http:\S+: .*connect/i, "$name: nobody listens");
	}
	check(ctl({env => \%env}, 'health'), 1, '', qr/connect/i, 'health: nobody listens');
	check(ctl({env => {ABX_TEMPLATE_URL => 'http://no-such-host.invalid'}}, 'get', '/x'), 7, '', qr/resolve/i, 'no such host');
	my ($got, @requests) = against([$ok], {prefix => '/sandbox//'}, 'get', '/x/');
	is $requests[0]{target}, '/sandbox/x/', 'the URL may have a path';
	($got) = against([$ok], {env => {http_proxy => $env{ABX_TEMPLATE_URL}, all_proxy => $env{ABX_TEMPLATE_URL}}}, 'get', '/x');
	is $got->{status}, 0, 'this machine is not asked through a proxy';
};

# ---- what is sent

subtest 'requests' => sub {
	my ($got, @requests) = against([$ok], 'call', 'a/b ü', 'text=x=y:=z', 'n:=5', 'f:=0.07', 'o:={"a": [1, null]}', 'b:=true', 'e=', 's:="q"');
	my $request = $requests[0];
	is "$request->{method} $request->{target}", 'POST /commands/a%2Fb%20%C3%BC', 'call: the name is one segment of the path';
	is $request->{headers}{'content-type'}, 'application/json', 'the content type';
	like $request->{headers}{'user-agent'}, qr/^abxctl/, 'the user agent';
	ok !exists $request->{headers}{authorization}, 'no token, no credential';
	is_deeply $json->decode($request->{body}),
		{text => 'x=y:=z', n => 5, f => 0.07, o => {a => [1, undef]}, b => JSON::PP::true, e => '', s => 'q'}, 'strings and JSON values';
	like $request->{body}, qr/"f": 0\.07[,}]/, 'numbers are as they were given';

	($got, $request) = against([$ok], {env => {ABX_SERVER_TOKEN => 's3cret/T.'}}, 'call', 'n');
	is $request->{headers}{authorization}, 'Bearer s3cret/T.', 'the token';
	is $request->{body}, '{}', 'no arguments';

	($got, $request) = against([$ok], 'get', '/a/../b?q=x y&ü#z%41');
	is "$request->{method} $request->{target}", 'GET /a/../b?q=x%20y&%C3%BC%23z%41', 'get: the path is sent as it is';
	is $request->{body}, '', 'without a body';
	($got, $request) = against([$ok], 'post', '/x');
	is "$request->{method} $request->{body} $request->{headers}{'content-length'}", 'POST  0', 'post without a body';
	($got, $request) = against([$ok], 'post', '/x', '{"a": 1}');
	is "$request->{method} $request->{target} $request->{body}", 'POST /x {"a": 1}', 'post with a body';
	my $large = '{"a": "' . 'x' x 3_000_000 . '"}';
	($got, $request) = against([$ok], {in => $large}, 'post', '/x', '-');
	ok $request->{body} eq $large, 'post: the body from standard input';
	ok !exists $request->{headers}{expect}, 'without waiting for a 100 Continue';
	($got, $request) = against([$ok], {in => ''}, 'post', '/x', '-');
	is $request->{headers}{'content-length'}, 0, 'post: an empty standard input';
	($got, $request) = against([$ok], 'delete', '/x?y=1');
	is "$request->{method} $request->{target} $request->{body}", 'DELETE /x?y=1 ', 'delete';
	($got, $request) = against([$ok], 'delete', '/x', '{"b": 2}');
	is "$request->{method} $request->{body}", 'DELETE {"b": 2}', 'delete with a body';

	my %commands = (
		'ls -la | wc' => ['ls -la | wc'], q{printf %s 'a b' 'it'\''s' '' '$x' -n} => ['printf', '%s', 'a b', "it's", '', '$x', '-n'],
		q{ls --help} => ['ls', '--help'], q{./a_b.sh --x=1 'ü'} => ['--', './a_b.sh', '--x=1', 'ü'],
	);
	for my $line (sort keys %commands) {
		($got, $request) = against([$ok], 'shell', @{$commands{$line}});
		is $json->decode($request->{body})->{command}, $line, "shell: $line";
	}
	is $request->{target}, '/shell', 'shell: the path';

	AbxServer::spew("$tmp/local", "\0\1\xff" . 'abc');
	($got, $request) = against([response(200, '{"path": "/h/x", "bytes": 6}')], 'upload', "$tmp/local", 'x "ü"');
	check($got, 0, "/h/x: 6 bytes\n", '', 'upload');
	is_deeply [@$request{qw(method target body)}], ['POST', '/upload?path=x%20%22%C3%BC%22', "\0\1\xffabc"], 'upload: the request';
	is_deeply [@{$request->{headers}}{qw(content-type content-length)}], ['application/octet-stream', 6], 'upload: raw bytes';
	($got, $request) = against([response(200, '{"path": "x", "bytes": 0}')], 'upload', "$tmp/local", "a\xff");
	is $request->{target}, '/upload?path_base64=Yf8%3D', 'upload: a name that is not UTF-8';
	($got, $request) = against([response(200, '')], 'download', 'a b/ü&?+', '-');
	is $request->{target}, '/download?path=a%20b/%C3%BC%26%3F%2B&raw=1', 'download: the request';
	($got, $request) = against([response(200, '')], 'download', "a\xff", '-');
	is $request->{target}, '/download?path_base64=Yf8%3D&raw=1', 'download: a name that is not UTF-8';
	for (['discover', 'GET /commands'], ['capabilities', 'GET /capabilities'], ['health', 'GET /health']) {
		($got, $request) = against([$ok], $_->[0]);
		is "$request->{method} $request->{target}", $_->[1], $_->[0];
	}
};

# ---- what is printed

subtest 'results' => sub {
	my @results = (
		['"ü\u0000x"', "ü\0x\n", 'a string'], ['"x\n"', "x\n", 'a string with its line end'], ['""', "\n", 'an empty string'],
		['7', "7\n", 'a number'], ['null', "null\n", 'null'], ['[]', "[]\n", 'an empty list'],
		['{"a": [1, {}], "b": 0.07}', "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": 0.07\n}\n", 'an object'],
		['{"stdout": "o", "stderr": "e"}', "{\n  \"stdout\": \"o\",\n  \"stderr\": \"e\"\n}\n", 'no exit code: an object like others'],
	);
	for (@results) {
		my ($got) = against([response(200, "{\"result\": $_->[0]}")], 'call', 'n');
		check($got, 0, $_->[1], '', "call: $_->[2]");
	}
	for ('"x"', '{"a": [1, 2]}', '{"stdout": "o", "stderr": "e", "exit_code": 3}') {
		my ($got) = against([response(200, "{\"result\": $_}")], 'call', 'n', '--json');
		check($got, 0, "$_\n", '', "call --json: $_");
	}
	for ([0, 0], [3, 3], [255, 255], [-9, 137], [-15, 143], [256, 1], [-200, 1]) {
		my ($code, $status) = @$_;
		my $result = "{\"stdout\": \"o\\n\", \"stderr\": \"e\", \"exit_code\": $code}";
		my ($got) = against([response(200, "{\"result\": $result}")], 'call', 'n');
		check($got, $status, "o\n", 'e', "call: exit code $code");
		($got) = against([response(200, $result)], 'shell', 'n');
		check($got, $status, "o\n", 'e', "shell: exit code $code");
	}
	my ($got) = against([response(200, '{"stdout": "o", "stderr": "", "exit_code": 0, "truncated": true}')], 'shell', 'n');
	check($got, 0, 'o', qr/^abxctl: .*cut\n$/, 'shell: output that was cut');
	($got) = against([response(200, '{"stdout": "o", "stderr": "", "exit_code": 4}')], 'shell', '--json', 'n');
	check($got, 0, "{\"stdout\": \"o\", \"stderr\": \"\", \"exit_code\": 4}\n", '', 'shell --json');
	($got) = against([response(200, '{"a": {"b": 1}}')], 'capabilities');
	check($got, 0, "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", '', 'capabilities');
	($got) = against([response(200, '{"a":1}')], 'capabilities', '--json');
	check($got, 0, "{\"a\": 1}\n", '', 'capabilities --json');
	($got) = against([response(200, '{"a":1}')], 'get', '/x');
	check($got, 0, "{\"a\":1}\n", '', 'get: JSON gets a line end');
	($got) = against([response(200, "\0\xff", 'Content-Type: application/octet-stream')], 'get', '/x');
	check($got, 0, "\0\xff", '', 'get: other bytes do not');
	($got) = against([response(201, '')], 'post', '/x');
	check($got, 0, "\n", '', 'any 2xx will do');

	my $list = '{"commands": [{"name": "hello", "description": "Say hello.", "args": [' .
		'{"name": "name", "type": "string", "required": false, "default": "World", "description": "Whom."},' .
		'{"name": "ü", "type": "float", "required": true, "default": null, "description": ""},' .
		'{"name": "x", "type": "boolean", "required": false, "default": null, "description": "Y"}]},' .
		'{"name": "a", "description": "No arguments.", "args": []}]}';
	($got) = against([response(200, $list)], 'discover');
	check($got, 0, "hello  Say hello.\n" .
		"    name  string   default \"World\"  Whom.\n" .
		"    ü     float    required         \n" .
		"    x     boolean  optional         Y\n" .
		"a      No arguments.\n", '', 'discover: columns');
	($got) = against([response(200, $list)], 'discover', '--json');
	is_deeply $json->decode($got->{out}), $json->decode($list)->{commands}, 'discover --json';
	($got) = against([response(200, '{"commands": []}')], 'discover');
	check($got, 0, '', '', 'discover: no commands');
};

subtest 'downloads' => sub {
	my $type = 'Content-Type: application/octet-stream';
	my $answer = response(200, "\0\1\xffabc", $type);
	my ($got) = against([$answer], 'download', 'x', '-');
	check($got, 0, "\0\1\xffabc", '', 'to standard output');
	mkdir "$tmp/to";
	($got) = against([$answer], 'download', 'x', "$tmp/to/new");
	check($got, 0, "$tmp/to/new: 6 bytes\n", '', 'to a new file');
	is AbxServer::slurp("$tmp/to/new"), "\0\1\xffabc", 'its content';
	is +(stat "$tmp/to/new")[2] & 07777, 0666 & ~umask, 'its mode';
	AbxServer::spew("$tmp/to/old", 'old and longer');
	chmod 0640, "$tmp/to/old";
	symlink 'old', "$tmp/to/link";
	($got) = against([$answer], 'download', 'x', "$tmp/to/link");
	is $got->{status}, 0, 'through a link';
	is AbxServer::slurp("$tmp/to/old"), "\0\1\xffabc", 'the file behind it is replaced';
	is +(stat "$tmp/to/old")[2] & 07777, 0640, 'and keeps its mode';
	ok -l "$tmp/to/link", 'the link stays';
	my $whole = join '', map { chr($_ % 256) } 1 .. 100_000;
	($got) = against([response(200, $whole, $type)], 'download', '--json', 'x', "$tmp/to/big");
	is_deeply $json->decode($got->{out}), {path => "$tmp/to/big", bytes => 100_000}, 'download --json';
	ok AbxServer::slurp("$tmp/to/big") eq $whole, 'a larger file';

	AbxServer::spew("$tmp/to/old", 'old');
	($got) = against([response(404, '{"error": "File not found", "type": "FileNotFoundError"}')], 'download', 'x', "$tmp/to/old");
	check($got, 1, '', "abxctl: File not found\n", 'no such file');
	(my $short = $answer) =~ s/Content-Length: 6/Content-Length: 7/;
	($got) = against([$short], 'download', 'x', "$tmp/to/old");
	check($got, 1, '', qr/^abxctl: /, 'an answer that breaks off');
	is AbxServer::slurp("$tmp/to/old"), 'old', 'the old file is as it was';
	($got) = against([$answer], 'download', 'x', "$tmp/to");
	check($got, 1, '', qr/^abxctl: cannot write \Q$tmp\E\/to: /, 'onto a directory');
	($got) = against([$answer], 'download', 'x', "$tmp/no/x");
	check($got, 1, '', qr/^abxctl: cannot write \Q$tmp\E\/no\/x: No such file/, 'into a directory that is not there');
	($got) = against([$answer], 'download', 'x', '/dev/full');
	check($got, 1, '', qr/^abxctl: cannot write \/dev\/full: No space/, 'onto a full device');
	my $limited = q{trap "" XFSZ; ulimit -f 8; exec "$@"};
	($got) = against([response(200, $whole, $type)], {program => '/bin/sh'}, '-c', $limited, 'sh', $abxctl, 'download', 'x', "$tmp/to/old");
	check($got, 1, '', qr/^abxctl: cannot write \Q$tmp\E\/to\/old: File too large/, 'more than may be written');
	is AbxServer::slurp("$tmp/to/old"), 'old', 'the old file is still as it was';
	opendir my $names, "$tmp/to" or die;
	is_deeply [sort grep { !/^\.\.?$/ } readdir $names], [qw(big link new old)], 'nothing else is left behind';
};

subtest 'uploads that cannot be' => sub {
	check(ctl('upload', "$tmp/missing", 'x'), 1, '', qr/^abxctl: cannot read \Q$tmp\E\/missing: No such file/, 'no such file');
	check(ctl('upload', $tmp, 'x'), 1, '', qr/^abxctl: cannot read \Q$tmp\E: Is a directory/, 'a directory');
	my ($got, $request) = against([response(413, '{"error": "too large", "type": "ValueError"}')], 'upload', "$tmp/local", 'x');
	check($got, 1, '', "abxctl: too large\n", 'more than the server takes');
	($got, $request) = against([response(200, '{"path": "x", "bytes": 10}')], {in => 'from input'}, 'upload', '--json', '-', 'x');
	is $request->{body}, 'from input', 'standard input';
	is $got->{out}, "{\"path\": \"x\", \"bytes\": 10}\n", 'upload --json';
	ok AbxServer::slurp('/proc/version') ne '', '(a file that calls itself empty)';
	($got, $request) = against([response(200, '{"path": "x", "bytes": 10}')], 'upload', '/proc/version', 'x');
	is $request->{headers}{'transfer-encoding'}, 'chunked', 'is sent to its end';
};

# ---- failures

subtest 'refusals' => sub {
	my $id = 'X-Request-Id: abc-123';
	my $type = 'Content-Type: application/json';
	my @answers = (
		[response(400, '{"error": "bad ü", "type": "ValueError"}', $type, $id), "abxctl: bad ü\n", '400'],
		[response(500, '{"error": "broken", "type": "RuntimeError"}', $type, $id), "abxctl: broken (request abc-123)\n", '500'],
		[response(500, '{"error": "broken"}'), "abxctl: broken\n", '500 without an id'],
		[response(502, '<html>', 'Content-Type: text/html', $id), qr/^abxctl: \S+ answered with HTTP status 502 \(request abc-123\)\n$/, 'a body that is not JSON'],
		[response(403, '{"x": 1}'), qr/^abxctl: \S+ answered with HTTP status 403\n$/, 'an object without error'],
		[response(400, '{"error": {"message": "no such model", "type": "t"}}'), "abxctl: no such model\n", 'an error of the agents'],
		[response(302, '', 'Location: http://127.0.0.1:1/'), qr/HTTP status 302\n$/, 'a redirect is not followed'],
		[response(401, '{"error": "unauthorized", "type": "AuthError"}'), "abxctl: unauthorized: set ABX_SERVER_TOKEN\n", 'no token'],
		["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"result\": 1}", qr/^abxctl: \S+: \S/, 'an answer that breaks off'],
		['', qr/^abxctl: \S+: Empty reply/, 'no answer'],
		["SSH-2.0-x\r\n", qr/^abxctl: \S+: \S/, 'another protocol'],
	);
	for (@answers) {
		my ($answer, $message, $name) = @$_;
		for my $subcommand ('call', 'post', 'shell') {
			my ($got) = against([$answer], $subcommand, $subcommand eq 'post' ? '/x' : 'x');
			check($got, 1, $subcommand eq 'post' ? qr/^/ : '', $message, "$subcommand: $name");
		}
	}
	my ($got) = against([$answers[7][0]], {env => {ABX_SERVER_TOKEN => 'wrong'}}, 'discover');
	check($got, 1, '', qr/^abxctl: unauthorized: .* does not know this ABX_SERVER_TOKEN\n$/, 'a wrong token');
	for (['discover', '{}'], ['call', '{}'], ['call', '5'], ['capabilities', 'x'], ['upload', '[]']) {
		($got) = against([response(200, $_->[1])], $_->[0], @{$arguments{$_->[0]}});
		check($got, 1, '', qr/^abxctl: \S+ does not answer as expected: /, "$_->[0]: the answer $_->[1]");
	}
};

subtest 'health' => sub {
	my ($got, @requests) = against([response(200, '{"status": "ok"}')], 'health');
	check($got, 0, "ok\n", '', 'a healthy server');
	($got) = against([response(503, '{"error": "not yet"}')], 'health');
	check($got, 1, '', "abxctl: not yet\n", 'one that is not');
	my $unhealthy = response(503, '{"error": "not yet"}');
	($got, @requests) = against([$unhealthy, '', $unhealthy, response(200, '{}')], 'health', '--wait', 60);
	check($got, 0, "ok\n", '', 'it is asked again');
	is scalar @requests, 4, 'until it is';
	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp') // die;
	my $url = 'http://127.0.0.1:' . $socket->sockport;
	check(ctl({env => {ABX_TEMPLATE_URL => $url}}, 'health', '--wait', '0.05'), 1, '', qr/connect/i, 'nobody listens, and the time is over');
	my $run = launch({env => {ABX_TEMPLATE_URL => $url}}, 'health', '--wait', 60);
	listen $socket, 1 or die "listen: $!";
	my $connection = $socket->accept;
	read_request($connection);
	syswrite $connection, response(200, '{}');
	check(finish($run), 0, "ok\n", '', 'it is noticed that somebody listens at last');
};

# ---- things seen while a request is under way

subtest 'under way' => sub {
	my $socket = listener();
	my %env = (ABX_TEMPLATE_URL => 'http://127.0.0.1:' . $socket->sockport, ABX_SERVER_TOKEN => 'the-s3cret-token');
	my $run = launch({env => \%env}, 'post', '/shell/stream', '{"command": "x"}');
	my $connection = $socket->accept;
	my $request = read_request($connection);
	is $request->{headers}{authorization}, 'Bearer the-s3cret-token', 'the token is sent';
	my ($environment, $line) = map { AbxServer::slurp("/proc/$run->{pid}/$_") } 'environ', 'cmdline';
	like $environment, qr/ABX_TEMPLATE_URL=http/, 'the environment can be read';
	unlike $environment . $line, qr/s3cret/, 'and does not show the token, nor does the command line';
	syswrite $connection, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nevent: stdout\ndata: {}\n\n";
	AbxServer::wait_for(sub { AbxServer::slurp("$run->{out}") =~ /\n\n/ });
	is AbxServer::slurp("$run->{out}"), "event: stdout\ndata: {}\n\n", 'an event is printed when it comes';
	syswrite $connection, "event: exit\ndata: {}\n\n";
	close $connection;
	check(finish($run), 0, "event: stdout\ndata: {}\n\nevent: exit\ndata: {}\n\n", '', 'and so are the others');
};

subtest 'https' => sub {
	my $key = "$tmp/key.pem";
	my $made = system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 " .
		"-keyout $key -out $tmp/cert.pem 2>/dev/null");
	plan skip_all => 'there is no openssl' if $made == -1 || $made >> 8 == 127;
	is $made, 0, 'a certificate is made';
	mkdir "$tmp/www";
	AbxServer::spew("$tmp/www/health", response(200, '{"status": "ok"}'));
	my $log = "$tmp/openssl.log";
	my $pid = fork // die;
	if ($pid == 0) {
		chdir "$tmp/www";
		open STDOUT, '>', $log;
		open STDERR, '>&', \*STDOUT;
		exec 'openssl', 's_server', '-accept', '127.0.0.1:0', '-key', $key, '-cert', "$tmp/cert.pem", '-HTTP' or POSIX::_exit(99);
	}
	push @ours, $pid;
	my $port;
	AbxServer::wait_for(sub { ($port) = (AbxServer::slurp($log) // '') =~ /^ACCEPT .*?:(\d+)$/m }) or return fail('openssl listens');
	my %env = (ABX_TEMPLATE_URL => "https://localhost:$port");
	check(ctl({env => \%env}, 'get', '/health'), 7, '', qr/certificate/, 'an authority that is not known');
	check(ctl({env => {%env, SSL_CERT_FILE => "$tmp/cert.pem"}}, 'get', '/health'), 0, "{\"status\": \"ok\"}\n", '', 'one that is, by SSL_CERT_FILE');
};

done_testing;
