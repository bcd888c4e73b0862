import { Button, Group, Select, Switch, TagsInput, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useId, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { readingTools, type ToolGroup, toolGroups } from '../../agents/tools.ts';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { ExternalToolRules } from '../mcp/servers/external-tool-rules.tsx';
import { type Rule, ToolRuleRow } from '../mcp/tool-rule.tsx';
import common from '../admin.module.css';
import { agentModels, mcpClients, mcpPolicy } from '../queries.ts';
import { wrongIn } from '../wrong-in.ts';
import styles from './definition-form.module.css';
import { InstructionsPreview } from './instructions-preview.tsx';
import { WorkspaceFields, wholeWorkspace } from './workspace-fields.tsx';

type Body = Schemas['AgentDefinitionRequest'];
type Rules = Readonly<Record<string, Rule>>;

type FormProps = {
  /** Without it, a new one. */
  readonly of?: Schemas['AgentDefinition'];
  readonly onSaved?: () => unknown;
};

const empty: Required<Body> = {
  name: '',
  purpose: '',
  model: null,
  instructions: '',
  tools: Object.fromEntries(readingTools.map((tool): [string, Rule] => [tool, 'allow'])),
  workspace: wholeWorkspace,
  isOffered: false,
  clients: [],
};

export function DefinitionForm({ of: known, onSaved }: FormProps) {
  const [draft, setDraft] = useState<Required<Body>>(known ?? empty);
  const change = (part: Partial<Body>) => setDraft((before) => ({ ...before, ...part }));
  const [missing, setMissing] = useState<Readonly<Record<string, string>>>({});
  const form = useRef<HTMLFormElement>(null);
  const { name, purpose, model, instructions, tools, workspace, isOffered, clients } = draft;
  const { data: offered } = useQuery(agentModels);
  const { data: knownClients = [] } = useQuery(mcpClients);
  const fields = { name, purpose, model, tools, workspace, isOffered, clients };
  const body = { ...fields, instructions };
  // Sending instructions marks them as compared with the current default.
  const changed = instructions === known?.instructions ? fields : body;
  const { run, error, isBusy } = useChange({
    act: () =>
      known === undefined
        ? unwrap(api.POST('/config/agents/definitions', { body }))
        : unwrap(
            api.PATCH('/config/agents/definitions/{id}', {
              params: { path: { id: known.id } },
              body: changed,
            }),
          ),
    said: known === undefined ? 'The definition is added.' : 'Saved.',
    refresh: ['admin', 'agents'],
    onDone: onSaved,
    onFailed: () => focusFirstWrong(form.current),
  });
  const wrong = { ...wrongIn(error, 'name'), ...missing };
  const isBeside = ['name', 'purpose', 'model', 'instructions'].some((field) => wrong[field] !== undefined);
  return (
    <form
      ref={form}
      noValidate
      className={common['card']}
      onSubmit={(event) => {
        event.preventDefault();
        const found = missingIn(draft);
        // The messages are on the page before the focus moves to the first of them.
        flushSync(() => setMissing(found));
        if (Object.keys(found).length > 0) focusFirstWrong(form.current);
        else run();
      }}
    >
      <div className={common['stack']}>
        <TextInput
          label="Name"
          required
          maxLength={100}
          autoComplete="off"
          value={name}
          error={wrong['name']}
          onChange={({ currentTarget }) => change({ name: currentTarget.value })}
        />
        <TextInput
          label="Purpose"
          description="Helps people choose a definition."
          required
          maxLength={500}
          autoComplete="off"
          value={purpose}
          error={wrong['purpose']}
          onChange={({ currentTarget }) => change({ purpose: currentTarget.value })}
        />
        <Select
          label="Model"
          description="A model that the client should use. The files for Claude Code and Codex name it."
          placeholder="Any"
          radius="md"
          clearable
          clearButtonProps={{ 'aria-label': 'Any model' }}
          value={model}
          error={wrong['model']}
          data={modelChoices(offered?.models ?? [], model)}
          onChange={(next) => change({ model: next })}
        />
        <Textarea
          label="Instructions"
          description="Postern gives its agents this text when they connect, after the instructions of the MCP policy. Leave it empty to use Postern’s default. Never put a secret in it."
          radius="md"
          rows={5}
          maxLength={4_000}
          value={instructions}
          error={wrong['instructions']}
          onChange={({ currentTarget }) => change({ instructions: currentTarget.value })}
        />
        <InstructionsPreview
          instructions={instructions}
          onChange={(next) => change({ instructions: next })}
        />
        <TagsInput
          label="Clients"
          description="Choose known clients, or type the id of another. A client has one definition at most."
          radius="md"
          clearable
          clearButtonProps={{ 'aria-label': 'No clients' }}
          value={clients}
          error={wrong['clients']}
          data={knownClients.map(({ clientId }) => clientId)}
          renderOption={({ option }) => clientLabel(option.value, knownClients)}
          onChange={(next) => change({ clients: next })}
        />
        <Switch
          label="Offer it to people"
          description="People can choose it when they allow a client, or in Settings, Agents. Clients in the list above always use it."
          checked={isOffered}
          onChange={({ currentTarget }) => change({ isOffered: currentTarget.checked })}
        />
        <Group gap="sm">
          <Button size="xs" variant="default" onClick={() => change({ tools: withReading(tools) })}>
            All reading tools
          </Button>
          <Button size="xs" variant="default" onClick={() => change({ tools: {} })}>
            None
          </Button>
        </Group>
        {toolGroups.map((group) => (
          <ToolRules
            key={group.effect}
            of={group}
            rules={tools}
            onChange={(next) => change({ tools: next })}
          />
        ))}
        <ExternalToolRules rules={tools} onChange={(next) => change({ tools: next })} />
        <WorkspaceFields of={workspace} onChange={(next) => change({ workspace: next })} />
        {error !== undefined && !isBeside && <Problem error={error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={isBusy}>
            {known === undefined ? 'Create definition' : 'Save'}
          </Button>
        </Group>
      </div>
    </form>
  );
}

/** Includes the chosen model, even before the models are loaded. */
function modelChoices(models: readonly Schemas['AgentModel'][], chosen: string | null) {
  const offered = models.map(({ name, note }) => ({
    value: name,
    label: note === '' ? name : `${name} (${note})`,
  }));
  return chosen === null || offered.some(({ value }) => value === chosen)
    ? offered
    : [...offered, { value: chosen, label: chosen }];
}

type RulesProps = {
  readonly of: ToolGroup;
  readonly rules: Rules;
  readonly onChange: (rules: Rules) => void;
};

/** A tool that the policy hides may be allowed here. Agents get it once the policy allows it too. */
function ToolRules({ of: { title, tools }, rules, onChange }: RulesProps) {
  const id = useId();
  const { data: policy } = useQuery(mcpPolicy);
  const policyRules: Rules = policy?.tools ?? {};
  return (
    <section aria-labelledby={id}>
      <h2 id={id} className={styles['title']}>
        {title}
      </h2>
      {tools.map(({ name, does }) => (
        <ToolRuleRow
          key={name}
          labelledBy={id}
          tool={name}
          does={`${does} ${policyWords[policyRules[name] ?? ''] ?? ''}`.trim()}
          rule={rules[name]}
          onChange={(rule) => onChange({ ...rules, [name]: rule })}
        />
      ))}
    </section>
  );
}

const policyWords: Readonly<Record<string, string>> = {
  hidden: 'The MCP policy hides it.',
  ask: 'The MCP policy asks the person.',
};

const withReading = (tools: Rules): Rules => ({ ...tools, ...empty.tools });

function missingIn({ name, purpose }: Required<Body>): Readonly<Record<string, string>> {
  return {
    ...(name.trim() === '' ? { name: 'Enter a name (up to 100 characters).' } : {}),
    ...(purpose.trim() === '' ? { purpose: 'Enter a purpose (up to 500 characters).' } : {}),
  };
}

function focusFirstWrong(form: HTMLFormElement | null): void {
  const first = form?.querySelector<HTMLElement>('[aria-invalid="true"], [role="alert"]');
  first?.focus();
  first?.scrollIntoView({ block: 'center' });
}

function clientLabel(clientId: string, known: readonly Schemas['McpClient'][]): string {
  const name = known.find((client) => client.clientId === clientId)?.name ?? clientId;
  return name === clientId ? clientId : `${name} (${clientId})`;
}
