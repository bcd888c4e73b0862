import { Pagination } from '@mantine/core';
import { useEffect } from 'react';

type PagesProps = {
  readonly page: number;
  /** Pages in all; 0 while unknown. */
  readonly total: number;
  readonly onChange: (page: number) => void;
};

/** Turns pages, where there is more than one. When the last one has gone, what is left is on the page before. */
export function Pages({ page, total, onChange }: PagesProps) {
  useEffect(() => {
    if (total > 0 && page > total) onChange(total);
  }, [onChange, page, total]);
  if (total < 2) return null;
  return (
    <Pagination
      mt="md"
      total={total}
      value={page}
      onChange={onChange}
      size="sm"
      getControlProps={(control) => ({ 'aria-label': `${control} page` })}
      getItemProps={(number) => ({ 'aria-label': `Page ${number}` })}
    />
  );
}
