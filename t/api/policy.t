# What a policy allows and forbids, key by key, on every way in.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxPolicy;
use AbxServer;
use MIME::Base64 qw(encode_base64);
use Test::More;

# ---- documents that stop the start

sub fails_with {
	my ($text, $message, $name, %env) = @_;
	my $server = AbxServer->prepare(env => { %env });

	AbxServer::spew("$server->{dir}/p.yaml", $text);
	$server->{env}{ABX_SERVER_POLICY} ||= "$server->{dir}/p.yaml";
	my ($status, undef, $err) = $server->run_abxd('--foreground', '--port', '0');
	is $status, 78, "$name: exit status";
	like $err, $message, "$name: message";
}

fails_with("endpoints:\n  shel: {}\n", qr{\Aabxd: \S+/p\.yaml:2: endpoints\.shel: unknown endpoint 'shel': did you mean 'shell'\?\n\z}, 'unknown endpoint');
fails_with("groups: {core: false}\n", qr/core is always on/, 'core off');
fails_with("endpoints:\n  pty_connect:\n    limits: {rate: 1/s}\n", qr/:3: endpoints\.pty_connect\.limits\.rate: is not implemented yet/, 'what nothing enforces');
fails_with("identities:\n  - {id: ci, token_env: NO_SUCH_TOKEN}\n", qr/:2: identities\[0\]: token_env: the variable NO_SUCH_TOKEN is not set/, 'no token');
fails_with('', qr/\Aabxd: ABX_SERVER_POLICY:1: unknown key 'enpoints': did you mean 'endpoints'\?/, 'the document itself', ABX_SERVER_POLICY => '{"enpoints": {}}');
fails_with('', qr{\Aabxd: /nonexistent/p\.yaml: cannot be read}, 'no such file', ABX_SERVER_POLICY => '/nonexistent/p.yaml');
fails_with("audit: {file: /nonexistent/audit}\n", qr/audit\.file: .*nonexistent/, 'an audit file that cannot be written');

# ---- a server with a rule of each kind

my $server = start_with(<<'END');
version: 1
groups: {dev_tools: true, terminal: false}
endpoints:
  shell:
    commands: {allow: ["echo *", "printf *", "sh -c *", "sleep *", "/bin/sh -c echo via*", "pwd", "env"], deny: ["*forbidden*"]}
    paths: {allow: ["%BASE%/work", "%DIR%/extra"], deny: ["**/private/**"]}
    limits: {timeout_seconds: 3, max_output_bytes: 300}
  upload: {allow_extensions: [.py, .txt], deny_extensions: [.txt], overwrite: false, limits: {max_bytes: 20}}
  upload_stream: {deny_extensions: [.so], paths: {deny: ["**/private/**", "%BASE%/*.key"]}}
  download: {paths: {deny: ["**/private/**", "%BASE%/*.key"]}, limits: {max_bytes: 100}}
  files_list: {limits: {max_depth: 2}, paths: {deny: ["**/private/**", "%BASE%/*.key"]}}
  files_search: {limits: {max_depth: 2}, paths: {deny: ["**/private/**"]}}
  files_stat: {paths: {deny: ["**/private/**", "%BASE%/*.key"]}}
  files_delete: {paths: {deny: ["**/private/**"]}}
  files_move: {paths: {deny: ["**/private/**"]}}
  files_archive: {limits: {max_files: 3}, paths: {deny: ["**/private/**"]}}
  files_watch: {limits: {max_duration_seconds: 1}}
  files_mkdir: {enabled: false}
  code_run: {languages: [bash]}
  env_get: {allow_vars: ["SEEN_*"], deny_vars: ["SEEN_NOT*"]}
  env_set: {deny_vars: ["LD_*"]}
END
my $base = $server->base;
my $extra = $server->dir . '/extra';

mkdir "$base/work";
mkdir $extra;
mkdir "$base/work/private";
mkdir "$base/private";
mkdir "$base/sub";
mkdir "$base/sub/private";
mkdir "$base/sub/deep";
mkdir "$base/sub/deep/deeper";
AbxServer::spew("$_", "content\n") for "$base/private/secret", "$base/a.key", "$base/plain", "$base/sub/deep/deeper/x", "$base/sub/private/y", "$base/sub/z";
symlink 'private/secret', "$base/link";
symlink 'private', "$base/way";
symlink 'plain', "$base/b.key";

is_deeply $server->get('/capabilities')->{json}{warnings}, ["$server->{policy}:8: endpoints.upload.allow_extensions: '.txt' is denied as well, which counts"], 'a warning';

subtest 'enabled' => sub {
	refused($server->post('/files/mkdir', { path => 'x' }), 404, 'endpoint_disabled', 'policy:endpoints.files_mkdir', 'an endpoint');
	refused($server->get('/pty/sessions'), 404, 'endpoint_disabled', 'policy:groups.terminal', 'a group');
	is check_of($server, 'files_mkdir'), 'endpoint_disabled policy:endpoints.files_mkdir', 'check';
	my $capabilities = $server->get('/capabilities')->{json};
	is_deeply $capabilities->{group_summary}{file_ops}, { enabled => 11, total => 12 }, 'the summary of the group';
	ok !$capabilities->{groups}{terminal}, 'a group that is off';
	is $capabilities->{endpoints}{files_mkdir}{rule}, 'policy:endpoints.files_mkdir', 'the rule is told';
	ok !exists $capabilities->{endpoints}{files_mkdir}{limits}, 'and nothing else of it';
	ok $capabilities->{policy}{configured}, 'a policy is configured';
	like $capabilities->{policy}{revision}, qr/\A[0-9a-f]{16}\z/, 'and has a revision';
};

subtest 'commands' => sub {
	my $rule = 'policy:endpoints.shell';
	my $shell = sub { $server->post('/shell', { command => $_[0], cwd => $extra }) };
	my $runshell = sub { $server->post('/commands/runshell', { cmd => $_[0], cwd => $extra }) };

	is $shell->('echo a')->{json}{stdout}, "a\n", 'one that is allowed';
	refused($shell->('ls'), 403, 'command_not_allowed', $rule, 'one that is not');
	refused($shell->('echo forbidden'), 403, 'command_not_allowed', $rule, 'one that is allowed and denied');
	is $shell->('sh -c "ls >/dev/null; echo x"')->{json}{stdout}, "x\n", '/shell looks at the words alone';
	is $runshell->('echo a')->{json}{result}{stdout}, "a\n", 'runshell: a plain command';
	refused($runshell->('echo a; ls'), 403, 'command_not_allowed', $rule, 'runshell: two commands');
	refused($runshell->('ls'), 403, 'command_not_allowed', $rule, 'runshell: another command');
	refused($runshell->('echo $(ls)'), 403, 'command_not_allowed', $rule, 'runshell: a substitution');
	is $runshell->('echo via; echo it')->{json}{result}{stdout}, "via\nit\n", 'runshell: the whole text is allowed';
	refused($runshell->('echo via; echo forbidden'), 403, 'command_not_allowed', $rule, 'runshell: a denied part of it');
	is check_of($server, 'shell', command => 'echo a'), undef, 'check: allowed';
	is check_of($server, 'shell', command => 'ls'), "command_not_allowed $rule", 'check: refused';
	is check_of($server, 'shell', command => 'echo "a'), 'status 400', 'check: no command at all';
};

subtest 'paths of commands' => sub {
	my $rule = 'policy:endpoints.shell';
	my $pwd = sub { $server->post('/shell', { command => 'pwd', @_ ? (cwd => $_[0]) : () }) };

	is $pwd->($extra)->{json}{stdout}, "$extra\n", 'a tree beside the base directory';
	is $pwd->("$base/work")->{json}{stdout}, "$base/work\n", 'and one in it';
	is $pwd->()->{json}{stdout}, "$base/work\n", 'the first is where commands start';
	refused($pwd->($base), 403, 'path_not_allowed', $rule, 'the base directory, which is replaced');
	refused($pwd->('private'), 403, 'path_not_allowed', $rule, 'a directory that is denied');
	refused($server->post('/commands/runshell', { cmd => 'pwd', cwd => $base }), 403, 'path_not_allowed', $rule, 'runshell');
	is check_of($server, 'shell', path => $base), "path_not_allowed $rule", 'check';
	is check_of($server, 'shell', path => "$extra/not/there"), undef, 'check says nothing of what is there';
};

subtest 'limits of commands' => sub {
	my $answer = $server->post('/shell', { command => 'sleep 30', cwd => $extra });
	is $answer->{status}, 500, 'a timeout';
	is $answer->{json}{error}, 'Command timed out after 3s', 'that of the policy';
	is $server->post('/shell', { command => 'sleep 30', cwd => $extra, timeout => 20 })->{json}{error}, 'Command timed out after 3s', 'also when the caller wants more';
	is $server->post('/shell', { command => 'sleep 30', cwd => $extra, timeout => 0.1 })->{json}{error}, 'Command timed out after 0.1s', 'less is up to the caller';
	$answer = $server->post('/shell', { command => 'printf ' . 'x' x 301, cwd => $extra });
	is_deeply $answer->{json}, { stdout => 'x' x 300, stderr => '', exit_code => 0, truncated => JSON::PP::true() }, 'captured output';
	is_deeply $server->get('/capabilities')->{json}{endpoints}{shell}{limits}, { timeout_seconds => 3, max_output_bytes => 300 }, 'told by /capabilities';
};

subtest 'uploads' => sub {
	my $rule = 'policy:endpoints.upload';
	my $upload = sub { $server->post('/upload', { path => $_[0], content_base64 => encode_base64($_[1] // 'x', '') }) };
	my $raw = sub { $server->post("/upload?path=$_[0]", $_[1] // 'x', headers => { 'Content-Type' => 'application/octet-stream' }) };
	my $command = sub { $server->post('/commands/upload', { path => $_[0], content => $_[1] // 'x' }) };

	for my $way (['JSON', $upload], ['raw', $raw], ['command', $command]) {
		my ($name, $put) = @$way;
		is $put->("$name.py")->{status}, 200, "$name: an extension that is allowed";
		is $put->("$name.PY")->{status}, 200, "$name: in other letters";
		refused($put->("$name.c"), 403, 'extension_not_allowed', $rule, "$name: one that is not");
		refused($put->($name), 403, 'extension_not_allowed', $rule, "$name: none");
		refused($put->("$name.txt"), 403, 'extension_not_allowed', $rule, "$name: one that is denied as well");
		refused($put->("new-$name/a/b.c"), 403, 'extension_not_allowed', $rule, "$name: in directories that are not there");
		ok !-e "$base/new-$name", "$name: which are not made for it";
		my $answer = $put->("$name.py", 'y');
		is $answer->{status}, 409, "$name: a file that is there";
		is $answer->{json}{type}, 'FileExistsError', "$name: is not overwritten";
		is $answer->{json}{rule}, $rule, "$name: by the rule";
		is AbxServer::slurp("$base/$name.py"), 'x', "$name: and keeps its content";
		refused($put->("large-$name.py", 'x' x 21), 413, 'payload_too_large', undef, "$name: too large");
		ok !-e "$base/large-$name.py", "$name: leaves nothing";
	}
	symlink 'real.c', "$base/harmless.py";
	refused($upload->('harmless.py'), 403, 'extension_not_allowed', $rule, 'the extension is that of the file behind a link');
	is check_of($server, 'upload', path => 'x.c'), "extension_not_allowed $rule", 'check: refused';
	is check_of($server, 'upload', path => 'x.py'), undef, 'check: allowed';
	$rule = 'policy:endpoints.upload_stream';
	my $stream = sub { $server->post('/files/upload-stream', { path => $_[0], content_base64 => encode_base64('xyz', '') }) };
	is $stream->('s.c')->{status}, 200, 'another endpoint, another rule';
	is $stream->('s.c')->{status}, 200, 'which overwrites';
	refused($stream->('s.so'), 403, 'extension_not_allowed', $rule, 'and has its own list');
	refused($stream->('private/new'), 403, 'path_not_allowed', $rule, 'a path that is denied');
	refused($stream->('new/private/x'), 403, 'path_not_allowed', $rule, 'a path that is denied and not there');
	ok !-e "$base/new", 'no directory is made on the way';
	refused($stream->('c.key'), 403, 'path_not_allowed', $rule, 'a glob within a directory');
	is $stream->('sub/c.key')->{status}, 200, 'does not reach further down';
};

subtest 'paths of files' => sub {
	my $rule = 'policy:endpoints.download';
	my $download = sub { $server->get("/download?path=$_[0]") };

	is $download->('plain')->{status}, 200, 'a file';
	for my $path (qw(private/secret private/none ./private/secret sub/../private/secret link way/secret a.key b.key), "$base/private/secret") {
		refused($download->($path), 403, 'path_not_allowed', $rule, $path);
	}
	refused($server->post('/commands/download', { path => 'private/secret' }), 403, 'path_not_allowed', $rule, 'the command download');
	refused($download->('../outside'), 403, 'path_not_allowed', undef, 'outside of the base directory: no rule of the policy');
	is $server->get('/files/stat?path=link')->{json}{type}, 'symlink', 'a link to what is denied can be looked at';
	refused($server->get('/files/stat?path=private'), 403, 'path_not_allowed', 'policy:endpoints.files_stat', 'not so what is denied');
	refused($server->get('/files/stat?path=b.key'), 403, 'path_not_allowed', 'policy:endpoints.files_stat', 'also when it is a link');
	AbxServer::spew("$base/big", 'x' x 101);
	refused($download->('big'), 413, 'payload_too_large', undef, 'max_bytes of a download');
	unlink "$base/big";

	my @names = map { $_->{name} } @{ $server->get('/files/list?path=.&recursive=true')->{json}{entries} };
	is_deeply [grep { m{private|\A[ab]\.key} } @names], [], 'a list leaves out what is denied';
	is_deeply [grep { m{\Asub/deep\z} } @names], ['sub/deep'], 'and goes as deep as the policy says';
	is_deeply [grep { m{deeper} } @names], [], 'but no deeper';
	refused($server->get('/files/list?path=private'), 403, 'path_not_allowed', 'policy:endpoints.files_list', 'what is denied cannot be listed');
	my @found = map { $_->{path} } @{ $server->post('/files/search', { path => '.', pattern => '*', max_depth => 30 })->{json}{results} };
	is_deeply [grep { m{private|deeper} } @found], [], 'a search finds nothing that is denied or too deep';
	is_deeply [grep { m{sub/z} } @found], ["$base/sub/z"], 'but the rest';

	refused($server->delete('/files?path=private'), 403, 'path_not_allowed', 'policy:endpoints.files_delete', 'what is denied cannot be deleted');
	refused($server->delete('/files?path=sub'), 403, 'path_not_allowed', 'policy:endpoints.files_delete', 'nor a tree that holds it');
	refused($server->post('/files/move', { source => 'sub', destination => 'sub2' }), 403, 'path_not_allowed', 'policy:endpoints.files_move', 'nor moved');
	refused($server->post('/files/move', { source => 'plain', destination => 'private/p' }), 403, 'path_not_allowed', 'policy:endpoints.files_move', 'nothing can be moved there');
	ok -e "$base/sub/private/y" && -e "$base/plain", 'all of it is still there';

	is $server->post('/files/archive', { paths => ['plain'] })->{status}, 200, 'an archive';
	is $server->post('/files/archive', { paths => ['plain', 'a.key', 'link', 'sub'] })->{status}, 400, 'of too many files';
	refused($server->post('/files/archive', { paths => ['private'] }), 403, 'path_not_allowed', 'policy:endpoints.files_archive', 'of what is denied');
	like $server->get('/files/watch?path=sub&timeout=100')->{content}, qr/event: end\ndata: \{"reason": "timeout"\}/, 'a watch ends when the policy says so';
};

subtest 'variables and languages' => sub {
	my $set = $server->post('/env', { vars => { SEEN_A => 1, SEEN_NOT_B => 2, OTHER => 3 } });
	is $set->{status}, 200, 'variables are set';
	is_deeply $server->get('/env')->{json}{variables}, { SEEN_A => '1' }, 'the policy says which are seen';
	refused($server->post('/env', { vars => { LD_PRELOAD => 'x' } }), 403, 'variable_not_allowed', 'policy:endpoints.env_set', 'and which may be set');
	is check_of($server, 'env_get', variable => 'SEEN_A'), undef, 'check: allowed';
	for my $name (qw(PATH home User SHELL ABX_SERVER_TOKEN abx_x)) {
		is check_of($server, 'env_set', variable => $name), 'variable_not_allowed', "check: $name is refused, as the call would be";
	}
	is check_of($server, 'env_get', variable => 'SEEN_NOT_A'), 'variable_not_allowed policy:endpoints.env_get', 'check: refused';
	is $server->post('/code/run', { code => 'echo x', language => 'bash' })->{json}{stdout}, "x\n", 'a language';
	refused($server->post('/code/run', { code => 'print(1)' }), 403, 'language_not_allowed', 'policy:endpoints.code_run', 'another, by default');
	is check_of($server, 'code_run', language => 'node'), 'language_not_allowed policy:endpoints.code_run', 'check: refused';
};

subtest 'the order of the checks' => sub {
	is $server->post('/shell', 'not json')->{status}, 400, 'a body that is none comes before the policy on values';
	is $server->post('/shell', { command => 5 })->{status}, 400, 'as does a parameter of a wrong type';
	is check_of($server, 'no_such'), 'unknown_endpoint', 'check: no such endpoint';
	is $server->post('/capabilities/check', {})->{status}, 400, 'check: none is named';
	is check_of($server, 'upload', path => '../x'), 'path_not_allowed', 'check: outside of the base directory';
};

is $server->stop, 0, 'the server ends';
done_testing;
