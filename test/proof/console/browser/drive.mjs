// Drives Chromium for package browser: reads one command per line, and answers each with one line. It decides nothing.
// Pages of several themes and widths may be open at once; the commands of one page are to come one after the other.
//
//   node drive.mjs CHROMIUM MODULES
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [executablePath, modules] = process.argv.slice(2)
const require = createRequire(modules + '/')
const { chromium } = require('playwright-core')
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

// A machine may be many times slower than ours: a limit only ends a hang.
const patience = 60_000
const arguments_ = ['--disable-gpu', '--force-color-profile=srgb', '--font-render-hinting=none']
if (process.getuid() === 0) arguments_.push('--no-sandbox') // as root Chromium has none

const browser = await chromium.launch({ executablePath, headless: true, args: arguments_, timeout: patience })
const pages = new Map()

// Runs in every document before its own scripts: what the browser reports is kept, whoever asks for it later.
function watch() {
	document.addEventListener('securitypolicyviolation', e => {
		window.sawOfPosthaste('csp', `${e.effectiveDirective}: ${e.blockedURI} ${e.sample} at ${e.sourceFile}:${e.lineNumber}`)
	})
	window.shiftOfPosthaste = { sum: 0, of: [] }
	new PerformanceObserver(list => {
		for (const entry of list.getEntries()) {
			if (entry.hadRecentInput) continue
			window.shiftOfPosthaste.sum += entry.value
			for (const source of entry.sources) {
				const node = source.node?.nodeType === 1 ? source.node : source.node?.parentElement
				window.shiftOfPosthaste.of.push(node ? node.outerHTML.slice(0, 120) : '?')
			}
		}
	}).observe({ type: 'layout-shift', buffered: true })
}

const newSeen = () => ({ dialogs: [], csp: [], errors: [] })

const commands = {
	async page({ theme, width, height, javascript, username, password }) {
		const context = await browser.newContext({
			colorScheme: theme, viewport: { width, height }, javaScriptEnabled: javascript, reducedMotion: 'reduce',
			timezoneId: 'UTC', locale: 'en-GB', isMobile: width < 500, hasTouch: width < 500, acceptDownloads: true,
			httpCredentials: username ? { username, password, send: 'always' } : undefined,
		})
		context.setDefaultTimeout(patience)
		const page = await context.newPage()
		const kept = { page, context, seen: newSeen(), scripts: javascript }
		await page.exposeBinding('sawOfPosthaste', (_, kind, text) => { kept.seen[kind].push(text) })
		await page.addInitScript(watch)
		page.on('dialog', async dialog => {
			kept.seen.dialogs.push(`${dialog.type()} ${dialog.message()}`)
			await dialog.dismiss().catch(() => {})
		})
		page.on('console', message => {
			if (message.type() !== 'error') return
			const kind = /content security policy/i.test(message.text()) ? 'csp' : 'errors'
			kept.seen[kind].push(`${message.text()} (${message.location().url}:${message.location().lineNumber})`)
		})
		page.on('pageerror', error => { kept.seen.errors.push(String(error)) })
		page.on('popup', popup => { kept.seen.dialogs.push(`popup ${popup.url()}`); popup.close().catch(() => {}) })
		const id = String(pages.size + 1)
		pages.set(id, kept)
		return id
	},
	async close({ page }) { await of(page).context.close() },
	async open({ page, url }) {
		const response = await of(page).page.goto(url, { waitUntil: 'load' })
		await settled(of(page))
		return { status: response?.status() ?? 0, url: of(page).page.url() }
	},
	seen({ page }) {
		const kept = of(page), seen = kept.seen
		kept.seen = newSeen()
		return seen
	},
	eval({ page, script, argument }) { return evaluate(page, script, argument) },
	async until({ page, script, argument }) {
		for (const end = Date.now() + patience; !await evaluate(page, script, argument);) {
			if (Date.now() > end) throw new Error(`within ${patience} ms it has not come to be that ${script}`)
			await new Promise(done => setTimeout(done, 20))
		}
	},
	async click({ page, selector, text }) { await find(page, selector, text).click() },
	async fill({ page, selector, value }) { await find(page, selector).fill(value) },
	async choose({ page, selector, value }) { await find(page, selector).selectOption(value) },
	async press({ page, key }) { await of(page).page.keyboard.press(key) },
	async wait({ page, selector, text, state }) { await find(page, selector, text).waitFor({ state: state || 'visible' }) },
	count({ page, selector, text }) { return all(page, selector, text).count() },
	async settle({ page }) { await settled(of(page)) },
	// Chromium that nobody looks at shows no tab as hidden, so that is said for it.
	async hide({ page, hidden }) {
		await of(page).page.evaluate(hidden => {
			Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => hidden ? 'hidden' : 'visible' })
			Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })
			document.dispatchEvent(new Event('visibilitychange'))
		}, hidden)
	},
	async axe({ page, within }) {
		const { page: tab } = of(page)
		await tab.evaluate(axe)
		return tab.evaluate(async within => {
			const places = within ? [...document.querySelectorAll(within)] : document
			const { violations } = await window.axe.run(places, { resultTypes: ['violations'] })
			return violations.map(v => ({
				id: v.id, impact: v.impact ?? 'minor', help: v.help,
				nodes: v.nodes.map(n => `${n.target.join(' ')}: ${n.failureSummary} ${n.html}`.slice(0, 400)),
			}))
		}, within)
	},
	async screenshot({ page, path, whole }) {
		await of(page).page.screenshot({ path, fullPage: whole, animations: 'disabled', caret: 'hide' })
	},
	async view({ page, theme, width, height }) {
		await of(page).page.emulateMedia({ colorScheme: theme })
		await of(page).page.setViewportSize({ width, height })
		await settled(of(page))
	},
}

function of(id) {
	const kept = pages.get(id)
	if (!kept) throw new Error(`there is no page ${id}`)
	return kept
}

// As an expression and not by eval in the page, which its policy forbids.
const evaluate = (page, script, argument) =>
	of(page).page.evaluate(`(argument => { ${script} })(${JSON.stringify(argument ?? null)})`)

const all = (page, selector, text) => of(page).page.locator(selector).filter(text ? { hasText: text } : {})
const find = (page, selector, text) => all(page, selector, text).first()

// settled waits until fonts are there and two frames were drawn: then what the page does by itself has been done.
async function settled({ page, scripts }) {
	if (!scripts) return // then no frame is told of, and nothing is done by itself
	await page.evaluate(async () => {
		await document.fonts.ready
		await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
	})
}

async function answer(line) {
	const { id, command, ...rest } = JSON.parse(line)
	const reply = { id }
	try {
		if (!Object.hasOwn(commands, command)) throw new Error(`there is no command ${command}`)
		reply.value = await commands[command](rest) ?? null
	} catch (error) {
		reply.error = String(error?.message ?? error)
	}
	process.stdout.write(JSON.stringify(reply) + '\n')
}

process.stdout.write(JSON.stringify({ id: 0, value: browser.version() }) + '\n')
for await (const line of createInterface({ input: process.stdin })) answer(line)
await browser.close()
