import { Button } from '@mantine/core';
import { OpenIcon } from '../shell/icons.tsx';

/** Opens a site or a preview in a new tab. */
export function OpenButton({ href, children }: { href: string; children: string }) {
  return (
    <Button component="a" href={href} target="_blank" rel="noreferrer" leftSection={<OpenIcon size={16} />}>
      {children}
    </Button>
  );
}
