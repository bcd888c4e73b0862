import { Anchor, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

type HeadProps = {
  /** The title of the browser tab. */
  readonly title: string;
  readonly children: ReactNode;
  /** The focused element disappeared with the previous content. */
  readonly takesFocus?: boolean;
};

export function NewSiteHead({ title, children, takesFocus = false }: HeadProps) {
  return (
    <div>
      <title>{`${title} · Postern`}</title>
      <Anchor component={Link} to="/sites" size="sm">
        ← Sites
      </Anchor>
      <Title
        order={1}
        size="h2"
        mt={4}
        tabIndex={-1}
        {...(takesFocus && { ref: beginHere })}
        className="wrap"
      >
        {children}
      </Title>
    </div>
  );
}

/** A stable function, so that React calls it when the heading mounts, not at every render. */
function beginHere(heading: HTMLHeadingElement | null): void {
  if (heading === null) return;
  scrollTo(0, 0);
  heading.focus({ preventScroll: true });
}
