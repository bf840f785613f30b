# The directory of commands and the policy: what stops the start, who may see and run what, and the limits of commands_run.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $built = AbxServer::build_dir();

sub files {
	my ($server, %files) = @_;

	AbxServer::spew("$server->{commands}/$_", $files{$_}, /\.sh\z/ ? 0755 : 0644) for keys %files;
}

subtest 'starts that fail' => sub {
	my %wrong = (
		'not YAML' => ["a.yaml", "exec: [", qr/a\.yaml:\d+: /],
		'not JSON' => ["a.json", "{\n\"exec\": [}", qr/a\.json: Invalid JSON: .* line 2/],
		'no map' => ["a.yaml", "- exec\n", qr/a\.yaml:1: must be a map, not a list/],
		'an empty file' => ["a.yaml", "", qr/a\.yaml:1: must be a map, not nothing/],
		'an unknown key' => ["a.yaml", "exec: [x]\ndescripton: y\n", qr/a\.yaml:2: unknown key 'descripton': did you mean 'description'\?/],
		'no exec' => ["a.yaml", "name: x\n", qr/a\.yaml:1: the key 'exec' is missing/],
		'exec that is text' => ["a.yaml", "exec: ls\n", qr/a\.yaml:1: exec: must be a list, not text/],
		'an empty exec' => ["a.yaml", "exec: []\n", qr/a\.yaml:1: exec: must have at least the program/],
		'a number in exec' => ["a.yml", "exec: [sleep, 5]\n", qr/a\.yml:1: exec: must be text, not a number: put it in quotes/],
		'no program' => ["a.json", '{"exec": [""]}', qr/a\.json:1: exec: the program's name is empty/],
		'a bad name' => ["a.yaml", "exec: [x]\nname: a/b\n", qr/a\.yaml:2: name: 'a\/b' may have letters/],
		'a name with a blank' => ["a.json", "{\"exec\": [\"x\"],\n \"name\": \"a b\"}", qr/a\.json:2: name: 'a b' may have letters/],
		'an empty name' => ["a.yaml", "exec: [x]\nname: ''\n", qr/a\.yaml:2: name: must not be empty/],
		'a name that is a number' => ["a.yaml", "exec: [x]\nname: 5\n", qr/a\.yaml:2: name: must be text, not a number/],
		'a file whose name is none' => ["a b.yaml", "exec: [x]\n", qr/a b\.yaml:1: name: 'a b' may have letters/],
		'hidden that is text' => ["a.yaml", "exec: [x]\nhidden: 'yes'\n", qr/a\.yaml:2: hidden: must be true or false, not text/],
		'scopes that are text' => ["a.yaml", "exec: [x]\nscopes: x\n", qr/a\.yaml:2: scopes: must be a list, not text/],
		'a timeout that is text' => ["a.yaml", "exec: [x]\ntimeout: '5'\n", qr/a\.yaml:2: timeout: must be a number, not text/],
		'a timeout of 0' => ["a.yaml", "exec: [x]\ntimeout: 0\n", qr/a\.yaml:2: timeout: must be more than 0 seconds/],
		'args that are a map' => ["a.yaml", "exec: [x]\nargs: {a: string}\n", qr/a\.yaml:2: args: must be a list, not a map/],
		'an argument without a name' => ["a.yaml", "exec: [x]\nargs:\n- {type: string}\n", qr/a\.yaml:3: args\.0: the key 'name' is missing/],
		'an unknown type' => ["a.yaml", "exec: [x]\nargs:\n- {name: b}\n- {name: a,\n   type: list}\n", qr/a\.yaml:5: args\.1\.type: unknown type 'list'/],
		'an unknown key of an argument' => ["a.yaml", "exec: [x]\nargs:\n- {name: a, requird: true}\n", qr/a\.yaml:3: args\.0: unknown key 'requird': did you mean 'required'\?/],
		'a default of another type' => ["a.yaml", "exec: [x]\nargs:\n- {default: x, name: a, type: integer}\n", qr/a\.yaml:3: args\.0\.default: must be a number, not text/],
		'a default that is a list' => ["a.yaml", "exec: [x]\nargs:\n- {name: a, default: [1]}\n", qr/a\.yaml:3: args\.0\.default: must be text, not a list/],
		'an argument twice' => ["a.yaml", "exec: [x]\nargs:\n- {name: a}\n- {name: a}\n", qr/a\.yaml:4: args\.1: the argument 'a' is there twice/],
		'a key twice' => ["a.yaml", "exec: [x]\nexec: [y]\n", qr/a\.yaml:2: the key 'exec' is repeated/],
		'an anchor' => ["a.yaml", "exec: &e [x]\n", qr/a\.yaml:1: exec: an anchor \(&\) is not supported/],
	);
	for my $name (sort keys %wrong) {
		my ($file, $text, $message) = @{ $wrong{$name} };
		my $server = AbxServer->prepare;
		files($server, $file => $text);
		my ($status, $out, $err) = $server->run_abxd('--foreground', '--port', '0');
		is $status, 78, "$name: the start fails";
		like $err, qr/\Aabxd: \Q$server->{commands}\E\/$message/, "$name: the message";
		is $err =~ tr/\n//, 1, "$name: is one line";
	}

	my $twice = AbxServer->prepare;
	files($twice, 'a.yaml' => "name: same\nexec: [x]\n", 'b.json' => '{"name": "same", "exec": ["y"]}');
	for my $mode ('--foreground', undef) {
		my ($status, $out, $err) = $twice->run_abxd($mode || (), '--port', '0');
		is $status, 78, 'a name that is defined twice';
		like $err, qr/\Aabxd: \S+b\.json: the command 'same' is defined twice: \S+a\.yaml has it as well\n\z/, 'is told in one line';
		is $out, '', 'and there is no ready line';
		ok AbxServer::wait_for(sub { !-e $twice->run }), 'nor, soon, a run directory';
	}
	my $mixed = AbxServer->prepare;
	files($mixed, 'a.yaml' => "name: primes\nexec: [x]\n", 'primes.so' => AbxServer::slurp("$built/packaging/examples/commands/primes.so"));
	my ($status, $out, $err) = $mixed->run_abxd('--foreground', '--port', '0');
	is $status, 78, 'a name of a manifest and of a native command';
	like $err, qr/\Aabxd: \S+primes\.so: the command 'primes' is defined twice: \S+a\.yaml has it as well\n\z/, 'is told';

	my $file = AbxServer->prepare;
	files($file, 'plain' => '');
	$file->{env}{ABX_COMMANDS_DIR} = "$file->{commands}/plain";
	($status, $out, $err) = $file->run_abxd('--foreground', '--port', '0');
	is $status, 78, 'a directory that is none';
	like $err, qr/\Aabxd: ABX_COMMANDS_DIR: \S+plain cannot be read: Not a directory\n\z/, 'is told';
};

subtest 'no directory' => sub {
	my $server = AbxServer->prepare;

	$server->{env}{ABX_COMMANDS_DIR} = $server->dir . '/nowhere';
	$server->launch;
	is scalar @{ $server->get('/commands')->{json}{commands} }, 3, 'there are no custom commands then';
};

subtest 'a reload' => sub {
	my $server = AbxServer->prepare;

	files($server, 'a.yaml' => "exec: [echo, '1']\n");
	$server->launch;
	files($server, 'b.yaml' => "exec: [echo, '2']\n");
	my $pid = $server->responder('commands');
	kill 'HUP', $server->pid;
	ok AbxServer::wait_for(sub { $server->post('/commands/b', {})->{status} == 200 }), 'a new command is there after a reload';
	files($server, 'c.yaml' => "exec: 5\n");
	kill 'HUP', $server->pid;
	ok AbxServer::wait_for(sub { (AbxServer::slurp($server->run . '/reload.status') || '') =~ /c\.yaml:1: exec: must be a list/ }), 'one that is wrong is told';
	is $server->post('/commands/b', {})->{status}, 200, 'and the others go on';
	like $server->log_text, qr/c\.yaml:1: exec: must be a list/, 'it is in the log as well';
};

my $policy = AbxServer::encode_json({
	identities => [
		{ id => 'one', token_env => 'ONE_TOKEN', scopes => ['demo:run'] },
		{ id => 'none', token_env => 'NONE_TOKEN', scopes => [] },
	],
	endpoints => { commands_run => { limits => { timeout_seconds => 1, max_output_bytes => 100, rate => '50/h' } } },
});

subtest 'scopes and limits' => sub {
	my $server = AbxServer->prepare(env => { ABX_SERVER_POLICY => $policy, ONE_TOKEN => 'token-one', NONE_TOKEN => 'token-none' });

	files($server, 'scoped.yaml' => "exec: [echo, '1']\nscopes: ['demo:run']\n", 'open.yaml' => "exec: [echo, '2']\n",
	      'slow.yaml' => "exec: [sleep, '60']\ntimeout: 600\n", 'large.sh' => "#!/bin/sh\nprintf '\"%0100d\"' 1\n", 'large.yaml' => "exec: [./large.sh]\n",
	      'small.sh' => "#!/bin/sh\nprintf '\"%098d\"' 1\n", 'small.yaml' => "exec: [./small.sh]\n");
	$server->launch;
	my $as = sub { return { 'X-Access-Token' => "token-$_[0]" } };
	my %seen = map { my $who = $_; $who => [map { $_->{name} } @{ $server->get('/commands', headers => $as->($who))->{json}{commands} }] } qw(one none);
	ok scalar(grep { $_ eq 'scoped' } @{ $seen{one} }), 'whoever has the scope sees the command';
	ok !grep({ $_ eq 'scoped' } @{ $seen{none} }), 'others do not';
	is $server->post('/commands/scoped', {}, headers => $as->('one'))->{status}, 200, 'and may run it';
	my $refused = $server->post('/commands/scoped', {}, headers => $as->('none'));
	is $refused->{status}, 403, 'others may not';
	is_deeply [@{ $refused->{json} }{qw(type code endpoint)}], ['PermissionError', 'missing_scope', 'commands_run'], 'the refusal';
	is $server->post('/commands/scoped', '[', headers => $as->('none'))->{status}, 403, 'which comes before the body is looked at';
	is $server->post('/commands/open', '[', headers => $as->('none'))->{status}, 400, 'as it is where nothing is refused';
	is $server->post('/commands/open', {})->{status}, 401, 'no credentials';

	my $slow = $server->post('/commands/slow', {}, headers => $as->('none'));
	is $slow->{json}{error}, 'Command timed out after 1s', 'the policy lowers the time of a command';
	$slow = $server->post('/commands/runshell', { cmd => 'sleep 60', timeout => 60 }, headers => $as->('none'));
	is $slow->{json}{error}, 'Command timed out after 1s', 'and that of a built-in one';
	like $server->post('/commands/large', {}, headers => $as->('none'))->{json}{error}, qr/larger than 100 bytes/, 'and its output';
	is $server->post('/commands/small', {}, headers => $as->('none'))->{status}, 200, 'which may reach it';
	my $run = $server->get('/capabilities', headers => $as->('one'))->{json}{endpoints}{commands_run};
	is_deeply $run->{limits}, { timeout_seconds => 1, max_output_bytes => 100, rate => '50/h' }, 'the limits in /capabilities';
	is $server->post('/commands/scoped', {}, headers => $as->('none'))->{status}, 403, 'a refused call' for 1 .. 60;
	is $server->post('/commands/open', {}, headers => $as->('none'))->{status}, 200, 'does not count against the rate';
	my $last;
	for (1 .. 60) {
		$last = $server->post('/commands/open', {}, headers => $as->('none'));
		last if $last->{status} != 200;
	}
	is $last->{status}, 429, 'the rate';
	is $server->post('/commands/open', {}, headers => $as->('one'))->{status}, 200, 'of each caller';
};

subtest 'confine' => sub {
	my $text = AbxServer::encode_json({ endpoints => { commands_run => { confine => { filesystem => JSON::PP::true } } } });
	my $server = AbxServer->prepare(env => { ABX_SERVER_POLICY => $text });

	files($server, 'look.yaml' => "exec: [./look.sh]\nargs: [{name: path}]\n",
	      'look.sh' => qq(#!/bin/sh\nif cat "\$(sed 's/.*: "//; s/".*//')" >/dev/null 2>&1; then echo true; else echo false; fi\n),
	      'write.yaml' => "exec: [./write.sh]\n", 'write.sh' => qq(#!/bin/sh\nif (echo x >"\$0.new") 2>/dev/null; then echo true; else echo false; fi\n),
	      'primes.so' => AbxServer::slurp("$built/packaging/examples/commands/primes.so"));
	AbxServer::spew($server->base . '/inside', 'x');
	AbxServer::spew($server->dir . '/outside', 'x', 0644);
	$server->launch;
	my $inside = $server->post('/commands/look', { path => $server->base . '/inside' });
	SKIP: {
		skip 'the kernel has no Landlock', 4 if ($inside->{json}{error} || '') =~ /no Landlock/;
		is_deeply $inside->{json}, { result => JSON::PP::true }, 'a confined program reads the base directory';
		is_deeply $server->post('/commands/look', { path => $server->dir . '/outside' })->{json}, { result => JSON::PP::false }, 'and nothing beside it';
		is_deeply $server->post('/commands/look', { path => "$server->{commands}/look.sh" })->{json}, { result => JSON::PP::true }, 'but its own directory';
		is_deeply $server->post('/commands/write', {})->{json}, { result => JSON::PP::false }, 'which it may not write';
	}
	my $native = $server->post('/commands/primes', {});
	is $native->{status}, 403, 'a native command cannot be confined, and is refused';
	is_deeply [@{ $native->{json} }{qw(type rule)}], ['PermissionError', 'policy:endpoints.commands_run'], 'by the rule of the policy';
	is $server->post('/commands/runshell', { cmd => 'true' })->{status}, 200, 'a built-in follows the policy of its own endpoint';
};

subtest 'off' => sub {
	my $server = AbxServer->start(env => { ABX_SERVER_POLICY => '{"endpoints": {"commands_run": {"enabled": false}}}' });

	my $refused = $server->post('/commands/runshell', { cmd => 'true' });
	is $refused->{status}, 404, 'commands_run that is off';
	is $refused->{json}{code}, 'endpoint_disabled', 'is told as such';
};

done_testing;
