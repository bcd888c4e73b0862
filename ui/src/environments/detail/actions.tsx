import { Box, Group } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { OpenButton } from '../../shell/open-button.tsx';
import { Problem } from '../../shell/problem.tsx';
import { ReasonedButton } from '../../shell/reasoned-button.tsx';
import { hoursInWords } from '../../shell/time.ts';
import { useChange } from '../../shell/use-change.ts';
import type { Facts } from './facts.ts';

/** The most frequent actions: open, deploy, and extend the lease. */
export function Actions({ environment, policy, now }: Facts) {
  const { id, uuid, link, deployEnabled, hasReadyActiveService, services, status, expiresAt } = environment;
  const params = { path: { id } };
  const deploy = useChange({
    act: () => unwrap(api.POST('/environments/{id}/deploy', { params })),
    said: `A deploy of ${uuid} is queued.`,
    refresh: ['environments'],
  });
  const extend = useChange({
    act: () => unwrap(api.POST('/environments/{id}/extend', { params, body: {} })),
    said: `The lease of ${uuid} is extended.`,
    refresh: ['environments'],
  });
  const error = deploy.error ?? extend.error;
  const isServed = services.some(({ url, kind }) => url !== null && kind !== 'external');
  const isAtMaximum = Date.parse(expiresAt) - now >= (policy.maxTtlHours * 60 - 1) * 60_000;
  return (
    <Box maw="100%">
      <Group gap="sm" align="start">
        {isServed && (hasReadyActiveService || status === 'asleep') && (
          <OpenButton href={link}>Open</OpenButton>
        )}
        <ReasonedButton
          variant="default"
          reason={
            !policy.enabled
              ? 'Environments are switched off.'
              : deployEnabled
                ? null
                : 'Deploys are paused. Resume them under Settings.'
          }
          loading={deploy.isBusy}
          onClick={deploy.run}
        >
          Deploy
        </ReasonedButton>
        <ReasonedButton
          variant="default"
          reason={
            isAtMaximum ? `The lease already ends in ${hoursInWords(policy.maxTtlHours)}, the maximum.` : null
          }
          loading={extend.isBusy}
          onClick={extend.run}
        >
          {`Extend by ${hoursInWords(policy.extensionHours)}`}
        </ReasonedButton>
      </Group>
      {error !== undefined && (
        <Box mt="sm" maw="28rem">
          <Problem error={error} />
        </Box>
      )}
    </Box>
  );
}
