/**
 * Text for a person at a terminal. Values that come from events, keys and messages may hold anything: control characters
 * that clear the screen or move the cursor, or marks that reverse the order of the text. They are shown as escapes.
 * JSON is not for a terminal, and has its own escapes.
 */

/**
 * The text on one line: control and format characters (Cc and Cf of Unicode), line ends, and places that Unicode keeps for
 * further invisible characters become `\u{...}`.
 */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}[\p{Default_Ignorable_Code_Point}&&\p{Cn}]]/gv,
    found => `\\u{${found.codePointAt(0)?.toString(16)}}`,
  )
}

/** The same for a text of several lines: line feeds stay. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}
