/**
 * An archive of the classes that a broker loads, in the form in which Java has them in memory. With it a broker starts with half
 * of the CPU. The first broker of a version that ends in order writes it, beside the jars.
 *
 * Java compares it with its own version and the class path, and starts without it if they differ.
 */
import { existsSync, renameSync, rmSync } from 'node:fs'
import { basename } from 'node:path'
import { jarFolder, type KafkaVersion } from './jars.ts'

/** Options of Java that use the archive, if there is one. */
export function withArchive(version: KafkaVersion): string[] {
  return existsSync(archive(version)) ? [`-XX:SharedArchiveFile=${archive(version)}`] : []
}

/** The same, or those that write it when the broker in this directory ends. */
export function withArchiveOrWriting(version: KafkaVersion, directory: string): string[] {
  const found = withArchive(version)
  return found.length > 0 ? found : [`-XX:ArchiveClassesAtExit=${part(version, directory)}`]
}

/** To be called when the broker has ended. A broker that was killed wrote none, or only a part of one. */
export function keepArchive(version: KafkaVersion, directory: string, wasKilled: boolean): void {
  const written = part(version, directory)
  if (wasKilled) rmSync(written, { force: true })
  else if (existsSync(written)) renameSync(written, archive(version))
}

function archive(version: KafkaVersion): string {
  return `${jarFolder(version)}.jsa`
}

/** A broker writes the archive to this path first. It is moved to its place once it is complete. */
function part(version: KafkaVersion, directory: string): string {
  return `${archive(version)}.${basename(directory)}`
}
