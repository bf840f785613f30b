#!/usr/bin/perl
# git_status and git_diff: every state, names with any bytes, branches, submodules, work trees, diffs and their numbers, and what is refused.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use GitRepo;
use MIME::Base64 qw(decode_base64);
use Test::More;

plan skip_all => 'git is not installed' unless grep { -x "$_/git" } split /:/, $ENV{PATH};

my $server = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools' });
my $base = $server->base;
my $n = 0;

sub new_dir {
	return "$base/r" . ++$n;
}

sub encoded {
	my ($text) = @_;

	$text =~ s/([^A-Za-z0-9._~\/-])/sprintf '%%%02X', ord $1/ge;
	return $text;
}

sub status_of {
	my ($dir) = @_;
	my $answer = $server->get('/git/status?path=' . encoded($dir));

	is $answer->{status}, 200, 'the status is answered' or diag $answer->{content};
	return $answer->{json};
}

sub diff_of {
	my ($dir, $more) = @_;
	my $answer = $server->get('/git/diff?path=' . encoded($dir) . ($more || ''));

	is $answer->{status}, 200, 'the diff is answered' or diag $answer->{content};
	return $answer->{json};
}

# path => status of each file.
sub states {
	my ($status) = @_;

	return { map { $_->{path} => $_->{status} } @{ $status->{files} } };
}

subtest 'a clean repository' => sub {
	my $dir = GitRepo::make(new_dir(), 'a' => "1\n");

	is_deeply status_of($dir), { branch => 'main', clean => JSON::PP::true, files => [] }, 'is clean';
	is_deeply diff_of($dir), { diff => '', stats => { files_changed => 0, insertions => 0, deletions => 0 } }, 'has no diff';
	like $server->get("/git/status?path=$dir")->{content}, qr/\A\{"branch": "main", "clean": true, "files": \[\]\}\n?\z/,
		'the order of the fields';
};

subtest 'every state' => sub {
	my $dir = GitRepo::make(new_dir(), map { $_ => "$_\n" x 20 } qw(changed staged gone removed moved kept type both));

	GitRepo::append_file("$dir/changed", "x\n");
	GitRepo::append_file("$dir/staged", "x\n");
	unlink "$dir/gone", "$dir/type";
	GitRepo::git($dir, 'rm', '-q', 'removed');
	GitRepo::git($dir, 'mv', 'moved', 'arrived');
	chmod 0755, "$dir/kept";
	symlink 'kept', "$dir/type";
	GitRepo::write_file("$dir/new", "new\n");
	GitRepo::write_file("$dir/intended", "intended\n");
	GitRepo::append_file("$dir/both", "x\n");
	GitRepo::git($dir, 'add', 'staged', 'new', 'both');
	GitRepo::append_file("$dir/both", "y\n");
	GitRepo::git($dir, 'add', '-N', 'intended');
	GitRepo::write_file("$dir/added-and-gone", "x\n");
	GitRepo::git($dir, 'add', 'added-and-gone');
	unlink "$dir/added-and-gone";
	mkdir "$dir/dir";
	GitRepo::write_file("$dir/dir/one", '');
	GitRepo::write_file("$dir/dir/two", '');
	GitRepo::write_file("$dir/.git/info/exclude", "ignored\n");
	GitRepo::write_file("$dir/ignored", '');
	my $status = status_of($dir);
	is_deeply states($status), {
		changed => 'modified', staged => 'modified', both => 'modified', kept => 'modified', type => 'modified', gone => 'deleted',
		removed => 'deleted', 'added-and-gone' => 'deleted', arrived => 'renamed', new => 'added', intended => 'added',
		'dir/one' => 'untracked', 'dir/two' => 'untracked',
	}, 'are told, untracked files one by one';
	ok !$status->{clean}, 'it is not clean';
	is_deeply [grep { exists $_->{original_path} } @{ $status->{files} }],
		[{ path => 'arrived', status => 'renamed', original_path => 'moved' }], 'a rename has both names';
	my $from_below = status_of("$dir/dir");
	is_deeply $from_below, $status, 'from a directory below it is the same';
};

subtest 'copies' => sub {
	my $dir = GitRepo::make(new_dir(), 'one' => "line\n" x 50);

	GitRepo::git($dir, 'config', 'status.renames', 'copies');
	GitRepo::write_file("$dir/two", "line\n" x 50);
	GitRepo::append_file("$dir/one", "x\n");
	GitRepo::git($dir, 'add', '-A');
	is_deeply states(status_of($dir)), { one => 'modified', two => 'copied' }, 'are told when the repository asks for them';
};

subtest 'a conflict' => sub {
	my $dir = GitRepo::make(new_dir(), 'f' => "1\n", 'g' => "a\nb\nc\n", 'h' => "1\n");

	GitRepo::git($dir, 'checkout', '-q', '-b', 'other');
	GitRepo::git($dir, 'rm', '-q', 'g');
	GitRepo::commit($dir, 'f' => "2\n", 'both' => "theirs\n");
	GitRepo::git($dir, 'checkout', '-q', 'main');
	GitRepo::commit($dir, 'f' => "3\n", 'g' => "a\nb\nd\n", 'both' => "ours\n");
	GitRepo::try_git($dir, '-c', 'user.name=a', '-c', 'user.email=a', 'merge', '-q', 'other');
	is_deeply states(status_of($dir)), { f => 'unmerged', g => 'unmerged', both => 'unmerged' }, 'is unmerged';
	my $diff = diff_of($dir);
	like $diff->{diff}, qr/^diff --cc f$/m, 'its diff is a combined one';
	is $diff->{stats}{files_changed}, 3, 'each file is counted once';
	GitRepo::append_file("$dir/h", "x\n");
	is diff_of($dir)->{stats}{files_changed}, 4, 'and so are others beside it';
};

subtest 'names with any bytes' => sub {
	my @names = ('with blank', "new\nline", "tab\tand\"quote\"", "umlaut-\xc3\xa4", '-dash', ' lead', "back\\slash", ':(top)magic', '# branch.head x');
	my $dir = GitRepo::make(new_dir(), 'renamed' => "1\n2\n3\n");
	my $moved = "moved \n\xc3\xa9 => x";

	GitRepo::write_file("$dir/$_", '') for @names;
	is_deeply [sort map { $_->{path} } @{ status_of($dir)->{files} }], [sort map { my $t = $_; utf8::decode($t); $t } @names],
		'arrive intact when untracked';
	GitRepo::git($dir, 'add', '-A');
	GitRepo::git($dir, 'mv', 'renamed', $moved);
	my ($file) = grep { $_->{status} eq 'renamed' } @{ status_of($dir)->{files} };
	utf8::decode($moved);
	is $file->{path}, $moved, 'and when renamed';
	is diff_of($dir, '&staged=true')->{stats}{files_changed}, @names + 1, 'and are counted in a diff';

	my $raw = "caf\xe9";
	GitRepo::write_file("$dir/$raw", "x\n");
	($file) = grep { $_->{path} =~ /\Acaf/ } @{ status_of($dir)->{files} };
	is $file->{path}, "caf\x{fffd}", 'what is no UTF-8 is replaced';
	is decode_base64($file->{path_base64}), $raw, 'and the bytes are beside it';
};

subtest 'a directory with an odd name' => sub {
	my $dir = GitRepo::make("$base/odd \n'\"\$(x) \xc3\xa4", 'a' => "1\n");

	GitRepo::append_file("$dir/a", "2\n");
	is_deeply states(status_of($dir)), { a => 'modified' }, 'is no obstacle to status';
	is diff_of($dir)->{stats}{insertions}, 1, 'nor to diff';
};

subtest 'branches' => sub {
	my $dir = GitRepo::make(new_dir());

	is status_of($dir)->{branch}, 'main', 'unborn';
	GitRepo::write_file("$dir/a", "1\n");
	GitRepo::git($dir, 'add', 'a');
	is_deeply states(status_of($dir)), { a => 'added' }, 'with a file';
	is diff_of($dir, '&staged=1')->{stats}{insertions}, 1, 'and its diff';
	GitRepo::commit($dir, a => "1\n");
	GitRepo::git($dir, 'checkout', '-q', '-b', "feature/\xc3\xa4-1");
	is status_of($dir)->{branch}, "feature/\x{e4}-1", 'with a slash and an umlaut';
	GitRepo::git($dir, 'checkout', '-q', '--detach');
	is status_of($dir)->{branch}, 'HEAD', 'detached';
	GitRepo::git($dir, 'pack-refs', '--all');
	GitRepo::git($dir, 'gc', '-q');
	GitRepo::git($dir, 'checkout', '-q', 'main');
	is_deeply status_of($dir), { branch => 'main', clean => JSON::PP::true, files => [] }, 'packed';
};

subtest 'objects named by SHA-256' => sub {
	my $dir = new_dir();

	mkdir $dir;
	GitRepo::try_git($dir, 'init', '-q', '-b', 'main', '--object-format=sha256');
	plan skip_all => 'this git has none' unless -d "$dir/.git";
	GitRepo::commit($dir, a => "1\n");
	GitRepo::append_file("$dir/a", "2\n");
	is_deeply states(status_of($dir)), { a => 'modified' }, 'status';
	is diff_of($dir)->{stats}{insertions}, 1, 'diff';
};

subtest 'settings of the repository that are only words' => sub {
	my $dir = GitRepo::make(new_dir(), 'a' => "1\n", '.gitattributes' => "*.txt text\n", 'crlf.txt' => "1\n");

	chmod 0755, "$dir/a";
	is_deeply states(status_of($dir)), { a => 'modified' }, 'modes count';
	GitRepo::git($dir, 'config', 'core.fileMode', 'false');
	is_deeply states(status_of($dir)), {}, 'and do not under core.fileMode=false';
	GitRepo::write_file("$dir/crlf.txt", "1\r\n");
	is diff_of($dir, '&file=crlf.txt')->{diff}, '', 'attributes for ends of lines are obeyed';
	GitRepo::write_file("$dir/crlf.txt", "1\n");
	GitRepo::write_file("$dir/.gitignore", "build/\n");
	mkdir "$dir/build";
	GitRepo::write_file("$dir/build/x", '');
	is_deeply states(status_of($dir)), { '.gitignore' => 'untracked' }, 'and so is .gitignore';
	GitRepo::append_file("$dir/.git/config", "broken [\n");
	my $answer = $server->get("/git/status?path=$dir");
	is $answer->{status}, 400, 'a broken configuration';
	is $answer->{json}{type}, 'GitError', 'is an error of git';
};

subtest 'submodules' => sub {
	my $module = GitRepo::make(new_dir(), 'a' => "1\n");
	my $inner = GitRepo::make(new_dir(), 'i' => "1\n");
	my $dir = GitRepo::make(new_dir(), 'f' => "1\n");

	GitRepo::git($module, 'submodule', '--quiet', 'add', $inner, 'inner');
	GitRepo::commit($module);
	GitRepo::git($dir, 'submodule', '--quiet', 'add', $module, 'the sub');
	GitRepo::git($dir, 'submodule', '--quiet', 'update', '--init', '--recursive');
	is_deeply states(status_of($dir)), { '.gitmodules' => 'added', 'the sub' => 'added' }, 'added';
	GitRepo::commit($dir);
	is_deeply states(status_of($dir)), {}, 'clean';
	my $sub = "$dir/the sub";
	GitRepo::append_file("$sub/a", "2\n");
	is_deeply states(status_of($dir)), { 'the sub' => 'modified' }, 'with a changed file';
	is_deeply states(status_of($sub)), { a => 'modified' }, 'and seen from inside';
	GitRepo::git($sub, 'checkout', '-q', 'a');
	GitRepo::write_file("$sub/new", '');
	is_deeply states(status_of($dir)), { 'the sub' => 'modified' }, 'with an untracked file';
	GitRepo::git($dir, 'config', '--file', '.gitmodules', 'submodule.the sub.ignore', 'untracked');
	GitRepo::commit($dir);
	is_deeply states(status_of($dir)), {}, 'that may be ignored';
	GitRepo::append_file("$sub/inner/i", "2\n");
	is_deeply states(status_of($dir)), { 'the sub' => 'modified' }, 'with a change in a submodule of its own';
	GitRepo::git("$sub/inner", 'checkout', '-q', 'i');
	unlink "$sub/new";
	GitRepo::commit($sub, 'a' => "3\n");
	is_deeply [map { "$_->{path} $_->{status}" } @{ status_of($dir)->{files} }], ['the sub modified'], 'with another commit';
	like diff_of($dir)->{diff}, qr/^\+Subproject commit [0-9a-f]{40}$/m, 'which the diff shows';
};

subtest 'work trees and other places of .git' => sub {
	my $dir = GitRepo::make(new_dir(), 'a' => "1\n");
	my $tree = new_dir();

	GitRepo::git($dir, 'worktree', 'add', '-q', '-b', 'side', $tree);
	GitRepo::append_file("$tree/a", "2\n");
	my $status = status_of($tree);
	is $status->{branch}, 'side', 'a work tree has its branch';
	is_deeply states($status), { a => 'modified' }, 'and its changes';
	is diff_of($tree)->{stats}{insertions}, 1, 'and its diff';
	is_deeply states(status_of($dir)), {}, 'the first one is clean';
	my $other = new_dir();
	GitRepo::git($base, 'init', '-q', '-b', 'main', "--separate-git-dir=$base/elsewhere.git", $other);
	is status_of($other)->{branch}, 'main', '.git may be elsewhere';
	GitRepo::git($dir, 'update-index', '--split-index');
	is_deeply states(status_of($dir)), {}, 'a split index';
	mkdir "$dir/below";
	mkdir "$dir/below/.git";
	is status_of("$dir/below")->{branch}, 'main', 'an empty .git is passed by';
};

subtest 'diffs' => sub {
	my $dir = GitRepo::make(new_dir(), 'a' => "1\n2\n3\n", "\xc3\xa4" => "x\n", 'bin' => "a\0b", 'sub/c' => "1\n", 'touched.bin' => "\0");

	GitRepo::write_file("$dir/a", "1\nzwei\n3\nvier\n");
	GitRepo::append_file("$dir/\xc3\xa4", "caf\xe9\n");
	GitRepo::write_file("$dir/bin", "a\0c");
	utime 1, 1, "$dir/touched.bin";
	my $diff = diff_of($dir);
	is_deeply $diff->{stats}, { files_changed => 3, insertions => 3, deletions => 1 }, 'the numbers';
	like $diff->{diff}, qr/^-2\n\+zwei\n 3\n\+vier$/m, 'the lines';
	like $diff->{diff}, qr{^Binary files a/bin and b/bin differ$}m, 'a binary file is named';
	like $diff->{diff}, qr{^\+\+\+ b/\x{e4}$}m, 'a name is not quoted for its umlaut';
	like $diff->{diff}, qr{^\+caf\x{fffd}$}m, 'what is no UTF-8 is replaced';
	ok !exists $diff->{truncated}, 'nothing was cut';
	is_deeply diff_of($dir, '&staged=true')->{stats}, { files_changed => 0, insertions => 0, deletions => 0 }, 'nothing is staged';
	GitRepo::git($dir, 'add', 'a');
	is_deeply diff_of($dir, "&staged=$_")->{stats}, { files_changed => 1, insertions => 2, deletions => 1 }, "staged=$_"
		for qw(1 true YES);
	is diff_of($dir, "&staged=$_")->{stats}{files_changed}, 2, "staged=$_" for qw(0 no), '';
	is_deeply diff_of($dir, '&file=bin')->{stats}, { files_changed => 1, insertions => 0, deletions => 0 }, 'one file';
	is diff_of($dir, '&file=*.nothing')->{diff}, '', 'a pattern that matches nothing';
	is diff_of($dir, '&file=*b*')->{stats}{files_changed}, 1, 'one that does';
	GitRepo::append_file("$dir/sub/c", "2\n");
	is diff_of("$dir/sub", '&file=c')->{stats}{files_changed}, 1, 'a file is taken from the path';
	is diff_of("$dir/sub")->{stats}{files_changed}, 3, 'without one it is the whole repository';
	my $index = AbxServer::slurp("$dir/.git/index");
	utime 2, 2, "$dir/touched.bin";
	diff_of($dir);
	status_of($dir);
	is AbxServer::slurp("$dir/.git/index"), $index, 'the index is not written to';
	is_deeply [glob "$dir/.git/*.lock"], [], 'nor locked';
};

subtest 'a long diff' => sub {
	my $dir = GitRepo::make(new_dir(), 'a' => '');
	my $line = "\xc3\xa4" x 50 . "\n";

	GitRepo::write_file("$dir/a", $line x 30000);
	my $diff = diff_of($dir);
	my $text = $diff->{diff};
	utf8::encode($text);
	ok $diff->{truncated}, 'is cut';
	like $text, qr/\n\+\Q$line\E\.\.\. diff truncated: it is longer than 1048576 bytes \.\.\.\n\z/, "on a line's edge, with a line that says so";
	$text =~ s/^\.\.\. diff truncated.*\n\z//m;
	cmp_ok length $text, '<=', 1048576, 'not longer than a MiB';
	cmp_ok length $text, '>', 1048576 - 102, 'and no shorter than it must be';
	is_deeply $diff->{stats}, { files_changed => 1, insertions => 30000, deletions => 0 }, 'the numbers are of the whole';
};

subtest 'what is refused' => sub {
	my $repo = GitRepo::make(new_dir(), 'a' => "1\n");
	my $plain = new_dir();
	my @wrong = (
		["path=$plain", 400, 'GitError', 'no repository'],
		['', 400, 'GitError', 'the base directory, when it is no repository'],
		["path=$repo/.git", 400, 'GitError', 'inside of .git'],
		["path=$repo/a", 400, 'GitError', 'a file'],
		["path=$repo/missing", 404, 'FileNotFoundError', 'nothing'],
		['path=/', 403, 'PermissionError', 'outside'],
		['path=..', 403, 'PermissionError', 'above'],
		['path=', 400, 'ValueError', 'empty'],
		["path=$repo%00", 400, 'ValueError', 'with a NUL'],
		["path=$repo&path=$repo", 400, 'ValueError', 'given twice'],
	);

	mkdir $plain;
	for my $case (@wrong) {
		my ($query, $code, $type, $what) = @$case;
		for my $endpoint (qw(status diff)) {
			my $answer = $server->get("/git/$endpoint?$query");
			is $answer->{status}, $code, "$endpoint: $what";
			is $answer->{json}{type}, $type, 'the type' or diag $answer->{content};
		}
	}
	# A repository above the base directory is none.
	GitRepo::git($server->dir, 'init', '-q');
	is $server->get("/git/status?path=$plain")->{json}{type}, 'GitError', 'discovery stops at the base directory';
	is $server->get("/git/diff?path=$repo&file=%00")->{status}, 400, 'a file with a NUL';
	is $server->get("/git/diff?path=$repo&file=")->{json}{type}, 'GitError', 'an empty file';
	is $server->get("/git/diff?path=$repo&file=../x")->{json}{type}, 'GitError', 'a file above the repository';
	is $server->get("/git/diff?path=$repo&file=:(nonsense)x")->{json}{type}, 'GitError', 'a pathspec that git does not know';
};

subtest 'paths that a policy denies' => sub {
	my $policy = { endpoints => { map { $_ => { paths => { deny => ['**/.ssh/**', '**/*.pem'] } } } qw(git_status git_diff) } };
	my $other = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools', ABX_SERVER_POLICY => AbxServer::encode_json($policy) });
	my $dir = GitRepo::make($other->base . '/repo', 'a' => "1\n", 'open' => "x\n" x 9, '.ssh/id' => "secret\n", 'sub/x.pem' => "secret\n", 'old.pem' => "secret\n");
	my $get = sub { $other->get("/git/$_[0]?path=repo" . ($_[1] || '')) };

	GitRepo::append_file("$dir/$_", "another secret\n") for qw(.ssh/id sub/x.pem);
	GitRepo::append_file("$dir/a", "2\n");
	GitRepo::git($dir, 'mv', 'old.pem', 'moved');
	GitRepo::write_file("$dir/new.pem", '');
	GitRepo::git($dir, 'mv', 'open', 'closed.pem');
	is_deeply states($get->('status')->{json}), { a => 'modified', moved => 'added', open => 'deleted' }, 'status tells nothing of them';
	unlike $get->('status')->{content}, qr/pem|ssh/, 'not even a name';
	for my $query ('', '&file=.', '&file=:(glob)**', '&file=.ssh', '&file=sub/x.pem') {
		my $answer = $get->('diff', $query);
		is $answer->{status}, 200, "diff$query";
		unlike $answer->{content}, qr/secret|pem|ssh/, 'shows nothing of them';
		is $answer->{json}{stats}{files_changed}, $query =~ /ssh|sub/ ? 0 : 1, 'and counts the others';
	}
	my $staged = $get->('diff', '&staged=1');
	unlike $staged->{content}, qr/pem/, 'nor of one that was renamed';
	is $get->('status', '/.ssh')->{json}{code}, 'path_not_allowed', 'one of them as the path';
	$other->stop;
};

subtest 'without git' => sub {
	my $repo = GitRepo::make(new_dir(), 'a' => "1\n");
	my $bin = AbxServer::temp_dir();
	my $path = join ':', "$bin", grep { !-e "$_/git" } split /:/, $ENV{PATH};
	my ($lighttpd) = grep { -x } map { "$_/lighttpd" } split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin';

	symlink $lighttpd, "$bin/lighttpd" or die;
	my $other = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools', PATH => $path, ABX_SERVER_BASE_DIR => $base });
	my $answer = $other->get("/git/status?path=$repo");
	is $answer->{status}, 500, 'the status';
	like $answer->{json}{error}, qr/git/, 'the message says what is missing';
	$answer = $other->get("/git/$_?path=$base") and is "$answer->{status} $answer->{json}{type}", '500 FileNotFoundError', "nor is one looked for by $_" for qw(status diff);
	is $answer->{json}{type}, 'FileNotFoundError', 'the type';

	# One that hangs is killed.
	GitRepo::write_file("$bin/git", "#!/bin/sh\nPATH=/bin:/usr/bin\nsleep 1000\n", 0755);
	my $socket = $other->connect;
	print $socket "GET /git/status?path=$repo HTTP/1.1\r\nHost: x\r\n\r\n";
	my $dev_tools = $other->responder('dev_tools');
	ok AbxServer::wait_for(sub { AbxServer::descendants_of($dev_tools) >= 2 }), 'a git that hangs';
	close $socket;
	ok AbxServer::wait_for(sub { !AbxServer::descendants_of($dev_tools) }), 'ends with its caller';
	ok AbxServer::wait_for(sub { my @left = glob $other->run . '/work-*'; !@left }), 'and leaves nothing';
	$other->stop;
};

is_deeply [glob $server->run . '/work-*'], [], 'no working directory is left';
is $server->stop, 0, 'the server ends well';

done_testing;
