// Sends the requests of the reference from the browser to the API, with the key and secret that the reader typed. Both stay in
// their two fields: nothing here stores them, logs them, or puts them into an address.

const answerMsMax = 30_000
const bodyCharactersMax = 400_000
const shownHeaders = [
  'x-data-as-of',
  'x-snapshot-id',
  'link',
  'age',
  'cache-control',
  'etag',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'deprecation',
  'sunset',
  'x-request-id',
]

for (const form of document.querySelectorAll('form[data-path]')) {
  form.addEventListener('input', () => showCurl(form))
  form.addEventListener('submit', event => {
    event.preventDefault()
    void send(form)
  })
  showCurl(form)
}

// The same as services/portal/guide/try-it.ts.
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

function encoded(text) {
  return encodeURIComponent(text.toWellFormed()).replaceAll("'", '%27')
}

function showCurl(form) {
  document.getElementById(`${form.dataset.id}-curl`).textContent =
    `curl -sS -H "X-API-Key: $PLEDGEVIEW_KEY" -H "X-API-Secret: $PLEDGEVIEW_SECRET" \\\n  '${addressOf(form)}'`
}

async function send(form) {
  const button = form.querySelector('button.with-script')
  const [key, secret] = ['try-key', 'try-secret'].map(id => document.getElementById(id))
  const missing = [key, secret].find(field => field.value.trim() === '')
  if (missing) {
    missing.focus()
    show(form, notice('Type your key and secret first: they are at the top of this page.'))
    return
  }
  if (!printable.test(key.value.trim()) || !printable.test(secret.value.trim())) {
    key.focus()
    show(form, notice('The key or the secret has characters that none has. Copy both again.'))
    return
  }
  button.disabled = true
  show(form, element('p', {}, 'Waiting for the answer …'))
  try {
    show(form, ...(await answerOf(addressOf(form), key.value.trim(), secret.value.trim())))
  } catch (error) {
    const why =
      error.name === 'TimeoutError'
        ? `No answer came within ${answerMsMax / 1000} seconds.`
        : `No answer came from ${form.dataset.api}. It may be away, or your network or an extension of the browser keeps it from you.`
    show(form, notice(why))
  } finally {
    button.disabled = false
  }
}

const printable = /^[!-~]+$/

async function answerOf(address, key, secret) {
  const started = performance.now()
  const response = await fetch(address, {
    headers: { 'X-API-Key': key, 'X-API-Secret': secret },
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
    redirect: 'error',
    signal: AbortSignal.timeout(answerMsMax),
  })
  const text = await response.text()
  const ms = Math.round(performance.now() - started)
  const headers = shownHeaders.filter(name => response.headers.has(name))
  return [
    element(
      'p',
      {},
      element('span', { class: `badge ${response.ok ? 'good' : 'bad'}` }, `Status ${response.status}`),
      ` after ${ms} ms, ${text.length.toLocaleString('en')} characters`,
    ),
    element(
      'dl',
      { class: 'fields' },
      ...headers.map(name =>
        element('div', {}, element('dt', {}, name), element('dd', {}, response.headers.get(name))),
      ),
    ),
    element(
      'pre',
      { tabindex: '0', role: 'group', 'aria-label': 'Body of the answer' },
      element('code', {}, pretty(text)),
    ),
  ]
}

function pretty(text) {
  let shown = text
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    // Not JSON: as it is.
  }
  return shown.length > bodyCharactersMax ? `${shown.slice(0, bodyCharactersMax)}\n…` : shown
}

function notice(text) {
  return element('div', { class: 'notice bad' }, element('p', {}, text))
}

// A screen reader reads the first line as soon as it is there. The rest would be too long to be read aloud unasked.
function show(form, first, ...rest) {
  document.getElementById(`outcome-of-${form.dataset.id}`).replaceChildren(first)
  document.getElementById(`${form.dataset.id}-answer`).replaceChildren(...rest)
}

// Texts become text nodes: what an answer holds is never read as HTML.
function element(name, attributes, ...children) {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
  made.append(...children)
  return made
}
