#!/usr/bin/env node
/**
 * `pledgeview`: the commands by name. Each reads its own arguments and answers with an exit code.
 *
 * A command is loaded when it is called: appending events needs no ClickHouse in its memory.
 */
import { type CommandEntry, runCommand } from './commands/command.ts'

const commands: Readonly<Record<string, CommandEntry>> = {
  start: {
    summary: 'the embedded service: projects, serves, and on a new data directory shows a demo platform',
    load: async () => (await import('./commands/start.ts')).startCommand,
  },
  projector: {
    summary: 'project from Kafka into a ClickHouse server (distributed)',
    load: async () => (await import('./commands/projector.ts')).projectorCommand,
  },
  query: {
    summary: 'serve the API from a ClickHouse server (distributed)',
    load: async () => (await import('./commands/query.ts')).queryCommand,
  },
  events: {
    summary: 'append FILE: validate NDJSON events and append them to the event log',
    load: async () => (await import('./commands/events.ts')).eventsCommand,
  },
  keys: {
    summary: 'issue | list | revoke: the API keys of an account',
    load: async () => (await import('./commands/keys.ts')).keysCommand,
  },
  status: {
    summary: 'how far the projection is, and what it holds',
    load: async () => (await import('./commands/status.ts')).statusCommand,
  },
  rejects: {
    summary: 'list | show | retry: records that could not be projected, by reason and time',
    load: async () => (await import('./commands/rejects.ts')).rejectsCommand,
  },
  rebuild: {
    summary:
      'replay the event log into new tables beside the live ones, and swap; status | abort | back | drop',
    load: async () => (await import('./commands/rebuild.ts')).rebuildCommand,
  },
  migrate: {
    summary: 'bring the tables up to date, and distributed also the topics and roles',
    load: async () => (await import('./commands/migrate.ts')).migrateCommand,
  },
}

// How long a command that is done may take to end by itself, ms.
const lingerMsMax = 2_000

// Whoever reads our output may stop early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

process.exitCode = await runCommand(commands, process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
})

// kafkajs can leave a connection open that it has lost sight of while a broker was away. What is done has to end, or
// nobody starts it again.
setTimeout(() => process.exit(), lingerMsMax).unref()
