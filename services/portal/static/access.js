// Help for the pages under /access. Every page works without it.

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
