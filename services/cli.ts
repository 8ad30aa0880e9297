#!/usr/bin/env node
/**
 * `pledgeview`: the list of commands. Each command reads its own arguments and returns an exit code.
 *
 * The code of a command is loaded when it is called: appending events does not load ClickHouse's client.
 */
import { enableCompileCache } from 'node:module'
import { type CommandEntry, runCommand } from './commands/command.ts'

// Halves the time until a command begins. Where it cannot be written, there is no cache.
enableCompileCache(new URL('../node_modules/.cache/pledgeview/compiled', import.meta.url).pathname)

const commands: Readonly<Record<string, CommandEntry>> = {
  start: {
    summary: 'the embedded service: projects, serves, and on a new data directory shows a demo platform',
    load: async () => (await import('./commands/start.ts')).startCommand,
  },
  projector: {
    summary: 'project from Kafka into a ClickHouse server (distributed)',
    load: async () => (await import('./commands/services.ts')).projectorCommand,
  },
  query: {
    summary: 'serve the API from a ClickHouse server (distributed)',
    load: async () => (await import('./commands/services.ts')).queryCommand,
  },
  portal: {
    summary: 'serve the developer portal (distributed)',
    load: async () => (await import('./commands/services.ts')).portalCommand,
  },
  events: {
    summary: 'append FILE: validate NDJSON events and append them to the event log',
    load: async () => (await import('./commands/events/events.ts')).eventsCommand,
  },
  keys: {
    summary: 'issue | list | revoke: the API keys of an account',
    load: async () => (await import('./commands/keys.ts')).keysCommand,
  },
  notify: {
    summary: 'send one mail to each contact of active keys, for example before a breaking change',
    load: async () => (await import('./commands/notify.ts')).notifyCommand,
  },
  status: {
    summary: 'how far the projection is, and what it holds',
    load: async () => (await import('./commands/status/status.ts')).statusCommand,
  },
  explain: {
    summary:
      'CAMPAIGN: from what the API shows back to the fold, the ledger and the log, or why it shows nothing',
    load: async () => (await import('./commands/explain/explain.ts')).explainCommand,
  },
  export: {
    summary: 'DIR: write every public campaign as NDJSON and Parquet, as of one moment',
    load: async () => (await import('./commands/export.ts')).exportCommand,
  },
  rejects: {
    summary: 'list | show | retry: records that could not be projected, by reason and time',
    load: async () => (await import('./commands/rejects/rejects.ts')).rejectsCommand,
  },
  rebuild: {
    summary:
      'replay the event log into new tables beside the live ones, and promote them; status | abort | rollback | drop',
    load: async () => (await import('./commands/rebuild/rebuild.ts')).rebuildCommand,
  },
  restored: {
    summary: 'after a restore of the tables from a backup: read again what they lack',
    load: async () => (await import('./commands/restored.ts')).restoredCommand,
  },
  purge: {
    summary: 'make what events have deleted or replaced really gone, for an erasure request',
    load: async () => (await import('./commands/purge.ts')).purgeCommand,
  },
  migrate: {
    summary: 'bring tables, topics and roles of the distributed form up to date',
    load: async () => (await import('./commands/migrate.ts')).migrateCommand,
  },
}

// What the program and its child processes write is for their user only.
process.umask(0o077)

// How long a finished command may take to exit by itself, ms.
const lingerMsMax = 2_000

// The reader of our output may stop early, for example `head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

process.exitCode = await runCommand(commands, process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
})

// kafkajs can keep a connection open that it lost track of during an outage of a broker. A finished command must
// still exit, because a supervisor restarts only a process that has ended.
setTimeout(() => process.exit(), lingerMsMax).unref()
