import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Command } from '../shell/command.tsx';
import styles from './agents.module.css';
import { claudeCode, codex, cursor, vscode } from './client-snippets.ts';

/** Snippets that connect a client to this installation. The client asks the person to sign in; the snippets hold no secret. */
export function AddToClient() {
  return (
    <details className={styles['card']}>
      <summary>Add Postern to Claude Code, Codex, VS Code or Cursor</summary>
      <Text size="sm" my="xs">
        The program opens a page where the person signs in and allows it. It needs no key. With another
        identity provider, replace <code>postern-mcp</code> with the client id registered there.
      </Text>
      <Client name="Claude Code" how="In a shell, in the folder of the project:">
        <Command text={claudeCode()} of="add Postern to Claude Code" />
      </Client>
      <Client
        name="Codex"
        how={
          <>
            In <code>~/.codex/config.toml</code>, then run <code>codex mcp login postern</code>:
          </>
        }
      >
        <Command text={codex()} of="add Postern to Codex" />
      </Client>
      <Client
        name="VS Code"
        how={
          <>
            In <code>.vscode/mcp.json</code>:
          </>
        }
      >
        <Command text={vscode()} of="add Postern to VS Code" />
      </Client>
      <Client
        name="Cursor"
        how={
          <>
            In <code>.cursor/mcp.json</code>:
          </>
        }
      >
        <Command text={cursor()} of="add Postern to Cursor" />
      </Client>
    </details>
  );
}

function Client({ name, how, children }: { name: string; how: ReactNode; children: ReactNode }) {
  return (
    <section className={styles['client']}>
      <Text size="sm" mb={4}>
        <b>{name}.</b> {how}
      </Text>
      {children}
    </section>
  );
}
