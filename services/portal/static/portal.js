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

// Browsers give the clipboard only to pages behind TLS or on the own machine. Elsewhere the text is selected.
async function copy(button) {
  const source = document.querySelector(button.dataset.copy)
  try {
    await navigator.clipboard.writeText(source.textContent)
    say(button, 'Copied', 'Copied to the clipboard')
  } catch {
    getSelection().selectAllChildren(source)
    say(button, 'Selected', 'The text is selected. Copy it with the keyboard.')
  }
}

const labels = new WeakMap()

// Shows a word on the button for two seconds, then what was there.
function say(button, word, sentence) {
  const label = labels.get(button) ?? [...button.childNodes]
  labels.set(button, label)
  button.replaceChildren(word)
  announcer.textContent = sentence
  setTimeout(() => {
    button.replaceChildren(...label)
    announcer.textContent = ''
  }, 2000)
}

// The tabs of samples: all show the language that was chosen last, also on other days.
const tabs = [...document.querySelectorAll('.tabs input')]
const showLanguage = language => {
  for (const tab of tabs) tab.checked ||= tab.value === language
}
for (const tab of tabs)
  tab.addEventListener('change', () => {
    showLanguage(tab.value)
    tryTo(() => localStorage.setItem('language', tab.value))
  })
tryTo(() => showLanguage(localStorage.getItem('language')))

// Key and secret of the reference stay while the tab lives, or until its person signs out in it. A new key goes there if its reader says so.
for (const field of document.querySelectorAll('#try-key, #try-secret')) {
  tryTo(() => {
    field.value = sessionStorage.getItem(field.id) ?? ''
  })
  field.addEventListener('input', () => tryTo(() => sessionStorage.setItem(field.id, field.value.trim())))
}
for (const link of document.querySelectorAll('a[data-take-over]'))
  link.addEventListener('click', () => {
    for (const name of ['key', 'secret'])
      tryTo(() => sessionStorage.setItem(`try-${name}`, document.getElementById(name).textContent))
  })
for (const form of document.querySelectorAll('form[action^="/sign-out"], form[action="/account/delete"]'))
  form.addEventListener('submit', () => tryTo(() => sessionStorage.clear()))

// A browser may keep its storage from pages.
function tryTo(act) {
  try {
    act()
  } catch {}
}

// Such a form is sent once, also after a double click: the browser would drop the answer to the first sending.
for (const form of document.querySelectorAll('form[data-once]')) {
  const status = document.createElement('span')
  status.setAttribute('role', 'status')
  form.append(' ', status)
  form.addEventListener('submit', event => {
    if (status.textContent) event.preventDefault()
    status.textContent = 'One moment.'
  })
  // Back to a page that the browser kept: the form can be sent again.
  addEventListener('pageshow', () => {
    status.textContent = ''
  })
}
