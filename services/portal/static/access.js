// Help for the pages under /access. Every page works without it.

// A form that creates something is sent once, also after a double click. The server refuses the second one as well.
for (const form of document.querySelectorAll('form[data-once]')) {
  form.addEventListener('submit', event => {
    if (form.dataset.sent) event.preventDefault()
    form.dataset.sent = 'yes'
    for (const button of form.querySelectorAll('button')) button.setAttribute('aria-disabled', 'true')
    form.setAttribute('aria-busy', 'true')
  })
}

// Back to a page that the browser kept: its forms can be used again.
addEventListener('pageshow', event => {
  if (!event.persisted) return
  for (const form of document.querySelectorAll('form[data-once]')) {
    delete form.dataset.sent
    form.removeAttribute('aria-busy')
    for (const button of form.querySelectorAll('button')) button.removeAttribute('aria-disabled')
  }
})

// The page of a new key is shown, so its secret has arrived: the key may stay.
const confirmation = document.querySelector('form[data-confirm]')
if (confirmation) void confirm(confirmation)

async function confirm(form) {
  const body = new URLSearchParams(new FormData(form))
  body.set('by', 'script')
  try {
    const { ok } = await fetch(form.action, { method: 'POST', body, keepalive: true })
    if (!ok) return
    form.querySelector('[data-confirm-status]').textContent =
      'Your browser has told us that this page reached you. The key stays.'
  } catch {
    // The button does the same, and the server may know already that the page was sent.
  }
}
