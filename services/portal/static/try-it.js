// Sends the requests of the reference from the browser to the API, with the key and secret that the reader typed or took over. Both
// stay in their two fields (portal.js keeps these while the tab lives): nothing here logs them, or puts them into an address.

const answerMsMax = 30_000
const bodyCharactersMax = 400_000
// Those that browsers may read, but for what they know themselves.
const hiddenHeaders = new Set(['content-type', 'content-length'])
const printable = /^[!-~]+$/
// More would make the page slow.
const colouredCharactersMax = 60_000
const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g

const credentials = ['key', 'secret'].map(name => document.getElementById(`try-${name}`))

for (const form of document.querySelectorAll('form[data-path]')) {
  form.addEventListener('input', () => showCurl(form))
  form.addEventListener('submit', event => {
    event.preventDefault()
    void send(form)
  })
  showCurl(form)
}

// A path parameter that is not given stays as its name in braces.
function addressOf(form) {
  let path = form.dataset.path
  const query = []
  for (const field of form.querySelectorAll('[data-in]')) {
    const value = field.value.trim()
    if (value === '') continue
    if (field.dataset.in === 'path') path = path.replace(`{${field.name}}`, () => encoded(value))
    else query.push(`${encoded(field.name)}=${encoded(value)}`)
  }
  return `${form.dataset.api}${path}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

// Also encodes the quote that would end the shell's word, and does not fail for half a surrogate pair.
function encoded(text) {
  return encodeURIComponent(text.toWellFormed()).replaceAll("'", '%27')
}

function showCurl(form) {
  partOf(form, 'curl').textContent =
    `curl -sS -H "X-API-Key: $PLEDGEVIEW_KEY" -H "X-API-Secret: $PLEDGEVIEW_SECRET" \\\n  '${addressOf(form)}'`
}

async function send(form) {
  const button = form.querySelector('button')
  const wrong = credentials.find(field => !printable.test(field.value.trim()))
  if (wrong) {
    wrong.focus()
    show(form, fault('Type your key and secret first, as you got them: they are at the top of this page.'))
    return
  }
  const [key, secret] = credentials.map(field => field.value.trim())
  button.disabled = true
  show(form, element('p', '', 'Waiting for the answer …'))
  try {
    await showAnswer(form, key, secret)
  } catch (error) {
    const isLate = error.name === 'TimeoutError'
    const why = 'It may be away, or your network or an extension of the browser keeps it from you.'
    show(form, fault(`No answer came${isLate ? ` within ${answerMsMax / 1000} seconds` : ''}. ${why}`))
  } finally {
    button.disabled = false
  }
}

async function showAnswer(form, key, secret) {
  const started = performance.now()
  const response = await fetch(addressOf(form), {
    headers: { 'X-API-Key': key, 'X-API-Secret': secret },
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
    redirect: 'error',
    signal: AbortSignal.timeout(answerMsMax),
  })
  const text = await response.text()
  const ms = Math.round(performance.now() - started)
  const headers = [...response.headers].filter(([name]) => !hiddenHeaders.has(name))
  const [code, details, summary, list] = partOf(form, 'answer').querySelectorAll('code, details, summary, dl')
  code.replaceChildren(...coloured(pretty(text).slice(0, bodyCharactersMax)))
  details.open = false
  summary.textContent = `${headers.length} headers`
  list.replaceChildren(
    ...headers.map(([name, value]) => element('div', '', element('dt', '', name), element('dd', '', value))),
  )
  const status = element('span', `badge ${response.ok ? 'good' : 'bad'}`, `Status ${response.status}`)
  const about = `after ${ms} ms, ${text.length.toLocaleString('en')} characters`
  show(form, element('p', '', status, ` ${about}`), true)
}

// The text of JSON with its names, texts and other values told apart.
function coloured(text) {
  if (text.length > colouredCharactersMax) return [text]
  const parts = []
  let end = 0
  for (const { 0: token, 1: quoted, 2: colon, index } of text.matchAll(tokens)) {
    const kind = quoted === undefined ? 'value' : colon === undefined ? 'text' : 'name'
    parts.push(text.slice(end, index), element('span', `json-${kind}`, token))
    end = index + token.length
  }
  return [...parts, text.slice(end)]
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

function fault(text) {
  return element('div', 'notice bad', element('p', '', text))
}

// A screen reader reads the first line as soon as it is there. The rest would be too long to be read aloud unasked.
function show(form, line, hasAnswer = false) {
  partOf(form, 'outcome').replaceChildren(line)
  partOf(form, 'answer').hidden = !hasAnswer
}

// What the page has for this request (guide/try-it.ts).
function partOf(form, name) {
  return document.getElementById(`${form.dataset.id}-${name}`)
}

// Texts become text nodes: what an answer holds is never read as HTML.
function element(name, className, ...children) {
  const made = document.createElement(name)
  made.className = className
  made.append(...children)
  return made
}
