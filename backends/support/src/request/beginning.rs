//! The beginning of an answer's body, for clients that read a body to its end before anybody else sees it.

use std::future::ready;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

/// The part of an error's body that is read. Every service says in less than this what is wrong.
const MOST_OF_AN_ERROR: usize = 64 << 10;

/// The part of any other answer that is read. A page of a listing has at most 5,000 names of 1,024 characters.
const MOST_OF_AN_ANSWER: usize = 32 << 20;

/// Returns the number of bytes that are read of an answer's body.
pub fn limit(is_success: bool) -> usize {
    if is_success { MOST_OF_AN_ANSWER } else { MOST_OF_AN_ERROR }
}

/// Ends `body` after `limit` bytes. The rest is never received, because a connection with an unread rest is closed.
pub fn of<E>(body: impl Stream<Item = Result<Bytes, E>>, limit: usize) -> impl Stream<Item = Result<Bytes, E>> {
    body.scan(limit, |left, chunk| {
        let is_at_its_end = *left == 0;
        let chunk = chunk.map(|mut bytes| {
            bytes.truncate(*left);
            *left -= bytes.len();
            bytes
        });
        ready((!is_at_its_end).then_some(chunk))
    })
}

#[cfg(test)]
mod tests {
    use futures_util::{TryStreamExt as _, stream};

    use super::*;

    #[tokio::test]
    async fn no_more_than_the_limit_is_read() {
        let chunks = |sizes: Vec<usize>| stream::iter(sizes).map(|size| Ok::<_, ()>(Bytes::from(vec![b' '; size])));
        for (sizes, limit, read) in
            [(vec![], 9, 0), (vec![3, 0, 4], 9, 7), (vec![3, 6], 9, 9), (vec![3, 9, 1], 9, 9), (vec![20], 9, 9)]
        {
            let body: Vec<Bytes> = of(chunks(sizes.clone()), limit).try_collect().await.unwrap();
            assert_eq!(body.iter().map(Bytes::len).sum::<usize>(), read, "{sizes:?}");
        }
        let endless = stream::repeat_with(|| Ok::<_, ()>(Bytes::from_static(b"Oh no")));
        assert_eq!(of(endless, limit(false)).map_ok(|bytes| bytes.len()).try_fold(0, sum).await, Ok(64 << 10));
    }

    async fn sum(sum: usize, bytes: usize) -> Result<usize, ()> {
        Ok(sum + bytes)
    }
}
