// Progressive help only: every page works without it. It shows what needs scripts, and copies what a button names.

document.documentElement.classList.add('scripted')

const announcer = document.createElement('p')
announcer.className = 'visually-hidden'
announcer.setAttribute('role', 'status')
document.body.append(announcer)

document.addEventListener('click', event => {
  const button = event.target instanceof Element ? event.target.closest('button[data-copy]') : null
  if (button) void copy(button)
})

async function copy(button) {
  const source = document.querySelector(button.dataset.copy)
  if (!source) return
  const text = source.value ?? source.textContent
  const copied = (await copiedByClipboard(text)) || copiedBySelection(source)
  say(button, copied ? 'Copied' : 'Selected')
  announcer.textContent = copied
    ? 'Copied to the clipboard'
    : 'The text is selected. Copy it with the keyboard.'
}

const before = new WeakMap()

// Shows a word on the button for two seconds, then what was there.
function say(button, word) {
  clearTimeout(before.get(button)?.timer)
  const nodes = before.get(button)?.nodes ?? [...button.childNodes]
  const timer = setTimeout(() => {
    button.replaceChildren(...nodes)
    before.delete(button)
    announcer.textContent = ''
  }, 2000)
  before.set(button, { nodes, timer })
  button.replaceChildren(word)
}

// Browsers give the clipboard only to pages behind TLS or on the own machine.
async function copiedByClipboard(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false
  }
}

function copiedBySelection(source) {
  const range = document.createRange()
  range.selectNodeContents(source)
  const selection = getSelection()
  selection.removeAllRanges()
  selection.addRange(range)
  return document.execCommand('copy')
}

// A form that creates something is sent once, also after a double click. The server refuses the second one as well.
for (const form of document.querySelectorAll('form[data-once]')) {
  const status = document.createElement('span')
  status.setAttribute('role', 'status')
  form.append(' ', status)
  form.addEventListener('submit', event => {
    if (status.textContent) event.preventDefault()
    // A key takes some seconds until it is active.
    status.textContent = 'One moment: the key is being made.'
  })
  // Back to a page that the browser kept: the form can be sent again.
  addEventListener('pageshow', () => {
    status.textContent = ''
  })
}
