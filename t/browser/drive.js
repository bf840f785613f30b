// Drives the page: node drive.js PAGE_URL CHROMIUM WS_URL. Prints TAP without a plan.
const { chromium } = require('playwright-core');
const [pageUrl, executablePath, wsUrl] = process.argv.slice(2);
let n = 0;

function ok(passed, name) {
	console.log(`${passed ? 'ok' : 'not ok'} ${++n} - ${name}`);
	return passed;
}

async function until(page, name, condition, argument) {
	try {
		await page.waitForFunction(condition, argument, { timeout: 30000 });
		return ok(true, name);
	} catch (error) {
		ok(false, name);
		console.log(`# ${error.message.split('\n')[0]}\n# ${(await page.evaluate('screen()')).join('\n# ')}`);
		return false;
	}
}

const shows = text => screen().some(line => line.includes(text));

async function type(page, text) {
	await page.focus('.xterm-helper-textarea');
	await page.keyboard.type(text);
}

async function open(browser) {
	const page = await browser.newPage({ viewport: { width: 1900, height: 900 } });
	page.on('pageerror', error => ok(false, `the page: ${error.message}`));
	await page.goto(`${pageUrl}#${wsUrl}`);
	return page;
}

async function main() {
	const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
	let page = await open(browser);

	await until(page, 'the session starts', () => events.some(event => event.event === 'started'));
	await type(page, 'echo "\u{1f600} 漢字 é"; stty size\n');
	await until(page, 'characters of every width', () => screen().some(line => line === '\u{1f600} 漢字 é'));
	await until(page, 'the size of the page\'s terminal', shows, '24 80');
	await page.evaluate('term.resize(200, 50)');
	await type(page, 'stty size; seq 1 15 | awk \'{ for (i = 1; i <= 20; i++) printf "%9d ", $1 * i; print "" }\'\n');
	await until(page, 'a resize', shows, '50 200');
	await until(page, 'a table of 200 columns, unbroken', () => screen().some(line => /^ +15 +30 .* 285 +300 *$/.test(line) && line.length >= 199));

	await type(page, 'vim -u NONE -N text\n');
	await until(page, 'vim paints', shows, 'line 40 of the text');
	ok(await page.evaluate('term.buffer.active.type') === 'alternate', 'on the alternate screen');
	await type(page, 'ggOtyped in vim');
	await page.keyboard.press('Escape');
	await until(page, 'what is typed is seen', shows, 'typed in vim');
	await page.evaluate('term.resize(90, 30)');
	await until(page, 'vim follows a resize', () => !screen().some(line => line.includes('line 40 of')) && screen()[28].startsWith('line 28'));
	const before = await page.evaluate('screen()');

	// Away, and back: the same session, as it was.
	await page.close();
	page = await open(browser);
	await page.evaluate('term.resize(90, 30)');
	await until(page, 'after a reload vim is there again', shows, 'typed in vim');
	await until(page, 'every line of it', lines => JSON.stringify(screen().slice(0, 29)) === JSON.stringify(lines.slice(0, 29)), before);
	ok(await page.evaluate('term.buffer.active.type') === 'alternate', 'on the alternate screen');
	await type(page, ':q!\n');
	await until(page, 'and ends', () => term.buffer.active.type === 'normal');

	await type(page, 'top\n');
	await until(page, 'top', shows, 'load average');
	await page.reload();
	await page.evaluate('term.resize(90, 30)');
	await until(page, 'top after a reload', () => screen().some(line => line.includes('load average')) && screen().some(line => line.includes('PID')));
	await type(page, 'q');
	// What is typed before top has given the terminal back is lost with it.
	await until(page, 'and ends', () => /[#$] $/.test(term.buffer.active.getLine(term.buffer.active.baseY + term.buffer.active.cursorY).translateToString(true)));
	await type(page, 'exit 3\n');
	await until(page, 'the end is told', () => events.some(event => event.event === 'exited' && event.exit_code === 3));
	await until(page, 'and the socket closed', () => events.some(event => event.type === 'close' && event.code === 1000));
	await browser.close();
}

main().catch(error => {
	ok(false, `the script: ${error.message}`);
	process.exit(1);
});
