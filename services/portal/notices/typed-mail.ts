/** The subject and the text of an announcement, as an operator typed them. Pure. */

export const subjectLengthMax = 150
export const textBytesMax = 32 * 1024

/** The subject, or why it cannot be sent, worded to follow the name of an option. */
export function checkSubject(typed: string): { subject: string } | { reason: string } {
  const subject = typed.trim()
  if (subject === '') return { reason: 'is missing' }
  if ([...subject].length > subjectLengthMax)
    return { reason: `has more than ${subjectLengthMax} characters` }
  return unprintable.test(subject) || !subject.isWellFormed()
    ? { reason: 'has line breaks or other control characters' }
    : { subject }
}

/** The text of a file, with line feeds only. */
export function checkText(bytes: Uint8Array): { text: string } | { reason: string } {
  if (bytes.length > textBytesMax) return { reason: `has more than ${textBytesMax} bytes` }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll('\r\n', '\n')
  } catch {
    return { reason: 'is not UTF-8' }
  }
  if (text.trim() === '') return { reason: 'is empty' }
  const at = text.split('\n').findIndex(line => unprintable.test(line.replaceAll('\t', ' ')))
  return at < 0 ? { text } : { reason: `has a control character in line ${at + 1}` }
}

// Also marks that change the direction of the text. Joiners (U+200C, U+200D) are part of words and emoji.
const unprintable =
  /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/u
