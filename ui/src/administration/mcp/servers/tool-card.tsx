import { Badge, Button, Switch } from '@mantine/core';
import { useId } from 'react';
import { api, unwrap } from '../../../api/client.ts';
import type { Schemas } from '../../../api/contract.ts';
import { Problem } from '../../../shell/problem.tsx';
import { useChange } from '../../../shell/use-change.ts';
import common from '../../admin.module.css';
import { RuleChoice } from '../tool-rule.tsx';
import styles from './tool-card.module.css';

type Tool = Schemas['McpServerTool'];
type Text = Schemas['McpToolText'];

type Props = { readonly server: Schemas['McpServer']; readonly tool: Tool };

const statusWords = {
  new: ['New', 'yellow'],
  changed: ['Changed', 'yellow'],
  accepted: ['Accepted', 'green'],
} as const;

/** One tool: its current and its accepted text, and the rule for agents. */
export function ToolCard({ server, tool }: Props) {
  const id = useId();
  const { name, status, problem, listed, accepted, digest } = tool;
  const [words, color] = statusWords[status];
  const { run, error, isBusy } = useChange({
    act: () =>
      unwrap(
        api.POST('/config/mcp/servers/{slug}/tools/{name}/accept', {
          params: { path: { slug: server.slug, name } },
          body: { digest },
        }),
      ),
    said: `${name} is accepted.`,
    refresh: ['admin', 'servers'],
  });
  return (
    <section className={common['card']} aria-labelledby={id}>
      <div className={common['head']}>
        <h2 id={id} className="wrap">
          <code>{name}</code>
        </h2>
        <Badge color={color}>{words}</Badge>
      </div>
      <div className={styles['texts']}>
        {status === 'changed' && accepted !== null && <TextOf title="Accepted" text={accepted} />}
        <TextOf
          title={status === 'accepted' ? 'Accepted text' : 'Current text from the server'}
          text={listed}
        />
      </div>
      {problem !== null && <p className={styles['problem']}>It cannot be accepted. {problem}</p>}
      {error !== undefined && <Problem error={error} />}
      {status !== 'accepted' && problem === null && (
        <Button size="xs" loading={isBusy} onClick={run} aria-label={`Accept ${name}`}>
          Accept
        </Button>
      )}
      {accepted !== null && <Rules server={server} name={name} />}
    </section>
  );
}

/** Shown as text, never as HTML: it comes from the external server. */
function TextOf({ title, text }: { readonly title: string; readonly text: Text }) {
  const schemas = [
    ['Arguments', text.inputSchema],
    ['Result', text.outputSchema],
    ['Annotations, which Postern ignores', text.annotations],
  ] as const;
  return (
    <div>
      <h3 className={styles['title']}>{title}</h3>
      {text.title !== null && (
        <p className={styles['text']}>
          <b>
            <bdi>{text.title}</bdi>
          </b>
        </p>
      )}
      <p className={styles['text']} dir="auto">
        {text.description === '' ? <span className="quiet">No description</span> : text.description}
      </p>
      {schemas.map(
        ([label, json]) =>
          json !== null && (
            <details key={label}>
              <summary>{label}</summary>
              <pre className={styles['schema']}>{JSON.stringify(JSON.parse(json), null, 2)}</pre>
            </details>
          ),
      )}
    </div>
  );
}

/** Each choice is saved at once. */
function Rules({
  server: { slug, tools, readOnlyTools },
  name,
}: Pick<Props, 'server'> & { readonly name: string }) {
  const id = useId();
  const isReadOnly = readOnlyTools.includes(name);
  const { run, error, isBusy } = useServerChange(slug, {
    readOnlyTools: isReadOnly ? readOnlyTools.filter((one) => one !== name) : [...readOnlyTools, name],
  });
  return (
    <div className={styles['rules']}>
      <span id={id}>Rule for agents</span>
      <Rule slug={slug} name={name} tools={tools} labelledBy={id} />
      <Switch
        label="Read-only"
        aria-label={`${name} is read-only`}
        checked={isReadOnly}
        disabled={isBusy}
        onChange={run}
      />
      {error !== undefined && <Problem error={error} />}
    </div>
  );
}

type RuleProps = {
  readonly slug: string;
  readonly name: string;
  readonly tools: Schemas['McpServer']['tools'];
  readonly labelledBy: string;
};

function Rule({ slug, name, tools, labelledBy }: RuleProps) {
  const allow = useServerChange(slug, { tools: { ...tools, [name]: 'allow' } });
  const ask = useServerChange(slug, { tools: { ...tools, [name]: 'ask' } });
  const hide = useServerChange(slug, { tools: { ...tools, [name]: 'hidden' } });
  const by = { allow, ask, hidden: hide };
  const error = allow.error ?? ask.error ?? hide.error;
  return (
    <>
      <RuleChoice labelledBy={labelledBy} rule={tools[name] ?? 'ask'} onChange={(rule) => by[rule].run()} />
      {error !== undefined && <Problem error={error} />}
    </>
  );
}

function useServerChange(slug: string, body: Schemas['McpServerChange']) {
  return useChange({
    act: () => unwrap(api.PATCH('/config/mcp/servers/{slug}', { params: { path: { slug } }, body })),
    said: 'Saved.',
    refresh: ['admin', 'servers'],
  });
}
