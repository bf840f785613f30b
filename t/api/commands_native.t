# Native commands: shared objects in the directory of commands.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;
use Time::HiRes ();

my $built = AbxServer::build_dir();
my $server = AbxServer->prepare;

sub install {
	my ($to, $path) = @_;

	AbxServer::spew("$to->{commands}/" . ($path =~ s{.*/}{}r), AbxServer::slurp("$built/$path") || die "$path is not built");
}

install($server, $_) for 'packaging/examples/commands/primes.so', 't/helper/native.so', grep { -e "$built/$_" } 't/helper/native_cpp.so';
$server->launch;

sub call {
	my ($name, $args) = @_;

	return $server->post("/commands/$name", $args || {});
}

sub is_refused {
	my ($answer, $status, $type, $message, $name) = @_;

	is $answer->{status}, $status, "$name: $status";
	is $answer->{json}{type}, $type, "$name: $type";
	like $answer->{json}{error}, $message, "$name: message";
}

subtest 'the list' => sub {
	my %list = map { $_->{name} => $_ } @{ $server->get('/commands')->{json}{commands} };

	is_deeply $list{primes}, { name => 'primes', description => 'The primes up to a limit.', args => [
		{ name => 'limit', type => 'integer', required => JSON::PP::false, default => 100, description => 'The largest number to look at.' } ] }, 'the example';
	is_deeply [map { [@$_{qw(name type default description)}] } @{ $list{echo}{args} }],
		[['text', 'string', undef, 'A text.'], ['int', 'integer', 3, ''], ['float', 'float', 1.5, 'A number.'], ['bool', 'boolean', JSON::PP::false, '']], 'all types';
	is $list{about}{description}, '', 'without a description';
	ok !$list{secret}, 'a hidden one is not there';
	ok $list{scoped}, 'one with scopes is, in local mode';
};

subtest 'calls' => sub {
	is call('is_prime', { number => 97 })->{content}, '{"result": true}', 'the example';
	is call('is_prime', { number => '91' })->{content}, '{"result": false}', 'coerced';
	is call('primes', { limit => 20 })->{content}, '{"result": [2, 3, 5, 7, 11, 13, 17, 19]}', 'a list';
	is_refused(call('primes', { limit => 10000001 }), 500, 'ValueError', qr/\Alimit: must be/, 'an error of its own');
	is_refused(call('is_prime', {}), 400, 'ValueError', qr/\Anumber: is required\z/, 'a missing argument');
	is_refused(call('is_prime', { number => 'x' }), 400, 'ValueError', qr/\Anumber: /, 'one that cannot be coerced');
	is call('echo', '{"text": 5, "int": 5.7, "more": 1}')->{content}, '{"result": {"text": "5", "int": 5, "float": 1.5, "bool": false}}', 'the arguments as JSON';
	is call('about')->{content}, '{"result": "what it is about"}', 'what a call is told';
	is call('getters', '{"text": "a\u0000\u00e9", "int": "5", "float": "2.5", "bool": "yes"}')->{content}, qq({"result": "a\\u0000\xc3\xa9"}), 'what is asked for one by one';
	is call('raw', { json => ' [NaN, 123456789012345678901234567890] ' })->{content}, '{"result": [NaN, 123456789012345678901234567890]}', 'a result byte for byte';
	is call('raw')->{content}, '{"result": null}', 'no result is null';
	is_refused(call('raw', { json => '[1' }), 500, 'RuntimeError', qr/not JSON/, 'no JSON');
	is_refused(call('fail', { type => 'KeyError', message => "x\n\"y\" " . 'z' x 1000 }), 500, 'KeyError', qr/\Ax\n"y" z{1000}\z/, 'a failure');
	is_refused(call('fail', { message => '' }), 500, 'RuntimeError', qr/\A\z/, 'a failure without words');
	is_refused(call('fail', { type => "no type\n", message => 'm' }), 500, 'RuntimeError', qr/\Am\z/, 'a type that is none');
	is_refused(call('silent'), 500, 'RuntimeError', qr/does not say why/, 'a failure that says nothing');
	is call('secret')->{content}, '{"result": {}}', 'a hidden one runs';
	is_refused(call('large', { bytes => 70 << 20 }), 500, 'RuntimeError', qr/larger than/, 'a result past the limit');
	my $large = $server->raw("POST /commands/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 19\r\n\r\n{\"bytes\": 52428800}");
	is length $large =~ s/\A.*?\r\n\r\n//sr, 52428800 + length('{"result": }'), 'fifty megabytes';
	is call('shout', { text => 'loud' })->{content}, '{"result": "LOUD"}', 'C++' if -e "$built/t/helper/native_cpp.so";
};

subtest 'time' => sub {
	my $file = $server->dir . '/until';
	my $told = $server->dir . '/told';
	my $answer = call('hang', { until => $file });

	is_refused($answer, 500, 'TimeoutError', qr/\ACommand timed out after 0\.2s\z/, 'past its time');
	like $answer->{headers}{'x-request-id'}, qr/\A\w+\z/, 'with the headers of every answer';
	is $server->get('/commands')->{status}, 200, 'the connection goes on';
	like $server->log_text, qr/ 500 \S+ POST \/commands\/hang .*timed out after 0\.2s/, 'it is in the log at once';
	my $pid = $server->responder('commands');
	is call('hang', { until => $file })->{status}, 500, 'call ' . $_ for 2 .. 16;
	is call('is_prime', { number => 2 })->{content}, '{"result": true}', 'the others do not mind';
	is_refused(call('hang', { until => $file }), 429, 'ResourceError', qr/have not returned/, 'too many that were left behind');
	AbxServer::spew($file, '');
	ok AbxServer::wait_for(sub { call('hang', { until => $file })->{content} eq '{"result": "late"}' }), 'once they have returned there is room again';
	is $server->responder('commands'), $pid, 'in the same process';

	my $socket = $server->connect;
	my $body = AbxServer::encode_json({ tells => $told });
	syswrite $socket, "POST /commands/patient HTTP/1.1\r\nHost: x\r\nContent-Length: ${\ length $body}\r\n\r\n";
	# lighttpd has to wait for the body: only then does it look for a client that leaves before its answer begins.
	Time::HiRes::sleep(0.1);
	syswrite $socket, $body;
	is $server->get('/commands')->{status}, 200, 'a call that waits';
	ok !-e $told, 'is not cancelled';
	close $socket;
	ok AbxServer::wait_for(sub { -e $told }), 'until its client leaves';
};

subtest 'a crash' => sub {
	my $pid = $server->responder('commands');
	my $answer = call('crash');

	cmp_ok $answer->{status}, '>=', 500, 'the call is answered';
	ok exists $answer->{json}{error}, 'as JSON';
	is call('is_prime', { number => 2 })->{content}, '{"result": true}', 'the next one finds the group there';
	isnt $server->responder('commands'), $pid, 'in a new process';
	is $server->get('/health')->{status}, 200, 'the others have not noticed';
};

subtest 'the end' => sub {
	my $file = $server->dir . '/never';

	my $pid = $server->responder('commands');
	is call('hang', { until => $file })->{status}, 500, 'a thread is left behind';
	kill 'HUP', $server->pid;
	# Sooner than abxd would end one that does not drain.
	ok AbxServer::wait_for(sub { !AbxServer::is_alive($pid) }, 40), 'and does not hold a responder that is replaced';
	is call('hang', { until => $file })->{status}, 500, 'another one';
	is $server->stop, 0, 'and does not hold the end';
};

subtest 'objects that are refused' => sub {
	my %wrong = (native_old => qr/native_old\.so: was built for version 2 of abx\/command\.h; this server has version 1/,
		     native_none => qr/native_none\.so: does not export abx_command_entry/);

	for my $name (sort keys %wrong) {
		my $refused = AbxServer->prepare;
		install($refused, "t/helper/$name.so");
		my ($status, $out, $err) = $refused->run_abxd('--foreground', '--port', '0');
		is $status, 78, "$name: the start fails";
		like $err, qr/\Aabxd: .*(?:$wrong{$name}).*\n\z/, "$name: in one line";
	}
	my $refused = AbxServer->prepare;
	AbxServer::spew("$refused->{commands}/text.so", "no object\n");
	my ($status, $out, $err) = $refused->run_abxd('--foreground', '--port', '0');
	is $status, 78, 'no object at all';
	like $err, qr/\Aabxd: cannot load a native command: [^\n]*text\.so[^\n]*\n\z/, 'in one line';
	$refused = AbxServer->prepare(env => { NATIVE_REFUSES => 'no licence' });
	install($refused, 't/helper/native.so');
	($status, $out, $err) = $refused->run_abxd('--foreground', '--port', '0');
	is $status, 78, 'an init that fails';
	like $err, qr/\Aabxd: [^\n]*native\.so: no licence\n\z/, 'says why';
};

done_testing;
