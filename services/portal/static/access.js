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
