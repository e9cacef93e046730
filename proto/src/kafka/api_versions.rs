//! ApiVersions 0: which versions a broker speaks.
//!
//! Brokers from 0.10 answer it; 0.9 stays silent or answers with an error, 0.8 closes the connection: the
//! connection then uses [`ApiVersions::for_0_9`] or [`ApiVersions::for_0_8`].

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Asks for the version table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApiVersionsRequest;

/// The version table and its error code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiVersionsResponse {
    /// Code 0, or 35 with a table of the versions that would have done.
    pub error: ErrorCode,
    /// The table.
    pub versions: ApiVersions,
}

/// The versions that a broker speaks, by API number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiVersions {
    by_api: BTreeMap<i16, VersionRange>,
}

impl ApiVersions {
    /// What a broker of 0.8.2 speaks, which cannot be asked.
    pub fn for_0_8() -> Self {
        [
            (ApiKey::Produce, 0, 0),
            (ApiKey::Fetch, 0, 0),
            (ApiKey::ListOffsets, 0, 0),
            (ApiKey::Metadata, 0, 0),
            (ApiKey::OffsetCommit, 0, 1),
            (ApiKey::OffsetFetch, 0, 1),
            (ApiKey::FindCoordinator, 0, 0),
        ]
        .into_iter()
        .map(|(api, min, max)| (api.code(), VersionRange::new(min, max)))
        .collect()
    }

    /// What a broker of 0.9 speaks, which cannot be asked either, as far as it is needed: it also tells of groups.
    pub fn for_0_9() -> Self {
        let groups = [ApiKey::DescribeGroups, ApiKey::ListGroups];
        let mut all = Self::for_0_8();
        all.by_api.extend(groups.map(|api| (api.code(), VersionRange::new(0, 0))));
        all
    }

    /// The broker's range for `api`, if it knows it.
    pub fn range(&self, api: ApiKey) -> Option<VersionRange> {
        self.by_api.get(&api.code()).copied()
    }

    /// The highest version of `api` that the broker and `ours` share.
    pub fn choose(&self, api: ApiKey, ours: VersionRange) -> Option<i16> {
        self.range(api)?.highest_common(ours)
    }

    /// The highest version of the request `R` that the broker and this crate share.
    pub fn choose_for<R: Request>(&self) -> Option<i16> {
        self.choose(R::API, R::VERSIONS)
    }
}

impl FromIterator<(i16, VersionRange)> for ApiVersions {
    fn from_iter<I: IntoIterator<Item = (i16, VersionRange)>>(ranges: I) -> Self {
        Self { by_api: ranges.into_iter().collect() }
    }
}

impl Request for ApiVersionsRequest {
    const API: ApiKey = ApiKey::ApiVersions;
    const NAME: &'static str = "ApiVersionsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    type Response = ApiVersionsResponse;

    fn encode(&self, _version: i16, _out: &mut Writer) {}
}

impl Response for ApiVersionsResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        ApiVersionsRequest::VERSIONS.check("ApiVersionsResponse", version)?;
        let mut r = Reader::new(body);
        let error = r.i16("ApiVersionsResponse.error_code")?.into();
        let ranges = r.array("ApiVersionsResponse.api_keys", 6, |r| {
            let api = r.i16("ApiVersionsResponse.api_keys.api_key")?;
            let min = r.i16("ApiVersionsResponse.api_keys.min_version")?;
            let max = r.i16("ApiVersionsResponse.api_keys.max_version")?;
            Ok((api, VersionRange::new(min, max)))
        })?;
        r.finish("ApiVersionsResponse")?;
        Ok(Self { error, versions: ranges.into_iter().collect() })
    }
}
