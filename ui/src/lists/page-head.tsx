import { Title } from '@mantine/core';
import type { ReactNode, RefObject } from 'react';
import styles from './page-head.module.css';

type PageHeadProps = {
  readonly title: string;
  /** One sentence on what the page is for. */
  readonly intro: ReactNode;
  /** Receives the focus when the focused element disappears. */
  readonly heading?: RefObject<HTMLHeadingElement | null>;
  /** Actions of the page, at the right. */
  readonly children?: ReactNode;
};

/** The top of a page, and its name in the browser's tab. */
export function PageHead({ title, intro, heading, children }: PageHeadProps) {
  return (
    <>
      <title>{`${title} · Postern`}</title>
      <div className={styles['head']}>
        <div className={styles['intro']}>
          <Title order={1} size="h2" tabIndex={-1} {...(heading && { ref: heading })}>
            {title}
          </Title>
          <p className="quiet">{intro}</p>
        </div>
        {children}
      </div>
    </>
  );
}

/** Search and filters above a list. */
export function Tools({ children }: { children: ReactNode }) {
  return <div className={styles['tools']}>{children}</div>;
}
